// What lies under the pointer in the 3D view: pointing lights it everywhere, a click selects it, Escape unselects.

const STILL = 4;

function addPicking({ stage, selection, shortcuts }) {
  const label = $("pick"), host = $("canvas");
  let waiting = null, pressed = null;
  const look = () => {
    if (!waiting) return;
    const { x, y } = waiting;
    waiting = null;
    const node = stage.nodeAt(x, y);
    label.hidden = !node;
    host.style.cursor = node ? "pointer" : "";
    selection.hover(node ? node.body : null);
    if (!node) return;
    label.textContent = node.link;
    const edge = $("view").getBoundingClientRect();
    label.style.left = `${Math.min(x - edge.left + 14, edge.width - label.offsetWidth - 8)}px`;
    label.style.top = `${Math.min(y - edge.top + 16, edge.height - label.offsetHeight - 8)}px`;
  };
  const away = () => {
    waiting = null;
    label.hidden = true;
    selection.hover(null);
  };
  host.addEventListener("pointermove", (event) => {
    if (event.buttons) { if (!label.hidden) away(); return; }
    if (!waiting) setTimeout(look, 40);
    waiting = { x: event.clientX, y: event.clientY };
  });
  host.addEventListener("pointerleave", away);
  // The camera's controls take pointers for themselves: listen before they do, and let go anywhere.
  host.addEventListener("pointerdown", (event) => { pressed = event.isPrimary && event.button === 0 && !event.shiftKey ? [event.clientX, event.clientY] : null; }, true);
  document.addEventListener("pointerup", (event) => {
    const from = pressed;
    pressed = null;
    if (!from || Math.hypot(event.clientX - from[0], event.clientY - from[1]) > STILL) return;
    const node = stage.nodeAt(event.clientX, event.clientY);
    if (node) selection.select(node.body, node.link);
    else selection.select(null);
  }, true);
  shortcuts.add("Escape", "Select nothing", () => selection.select(null));
}
