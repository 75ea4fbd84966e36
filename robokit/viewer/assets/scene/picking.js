// What lies under the pointer in the 3D view.

function addPicking({ stage }) {
  const label = $("pick");
  let waiting = null;
  const look = () => {
    const { x, y } = waiting;
    waiting = null;
    const node = stage.nodeAt(x, y);
    label.hidden = !node;
    if (!node) return;
    label.textContent = node.link;
    const edge = $("view").getBoundingClientRect();
    label.style.left = `${Math.min(x - edge.left + 14, edge.width - label.offsetWidth - 8)}px`;
    label.style.top = `${Math.min(y - edge.top + 16, edge.height - label.offsetHeight - 8)}px`;
  };
  $("canvas").addEventListener("pointermove", (event) => {
    if (event.buttons) { label.hidden = true; return; }
    if (!waiting) setTimeout(look, 40);
    waiting = { x: event.clientX, y: event.clientY };
  });
  $("canvas").addEventListener("pointerleave", () => { label.hidden = true; });
}
