"""The page's data and its JavaScript name the same keys, in the text and while it runs."""

from __future__ import annotations

import dataclasses

import pytest
from for_each import for_each
from page_scripts import NAMES, Reading, declared, tokens
from test_viewer_browser import Watch
from viewer_cases import pendulum

from robokit.sweeps import report
from robokit.sweeps.report import WORKER as RUN_WORKER
from robokit.viewer import write_check_page, write_page
from robokit.viewer.page import ASSETS, SCRIPTS, SIDE_BY_SIDE_SCRIPTS, SIDE_BY_SIDE_STYLES, STYLES, WORKER

ALL = dict.fromkeys((*SCRIPTS, *WORKER, *SIDE_BY_SIDE_SCRIPTS, *report.REPORT_SCRIPTS, *RUN_WORKER))
TEXTS = {name: (ASSETS / name).read_text(encoding="utf-8") for name in ALL}


def read(*texts):
    reading = Reading()
    for text in texts:
        reading.script(text)
    return reading


def test_all_scripts_are_on_the_page():
    own = {path.relative_to(ASSETS).as_posix() for path in ASSETS.rglob("*.js")}
    assert {name for name in own if not name.startswith("vendor/")} == set(ALL)


def test_all_style_sheets_are_on_the_page():
    assert {path.relative_to(ASSETS).as_posix() for path in ASSETS.rglob("*.css")} == {
        *STYLES,
        *SIDE_BY_SIDE_STYLES,
        *report.REPORT_STYLES,
    }


@for_each("name", TEXTS)
def test_scripts_read_declared_keys_only(name):
    assert read(TEXTS[name]).problems == []


def test_every_declared_key_is_read():
    unread = set(declared()) - read(*TEXTS.values()).read
    assert {f"{kind.__name__}.{key}" for kind, key in unread} == set()


def test_every_class_of_the_payload_has_a_name_in_the_scripts():
    reached_by_chains_alone = {
        "BodiesData",
        "StructureData",
        "CheckData",
        "FigureData",
        "EventsData",
        "EventKindData",
    }
    classes = {kind.__name__ for kind, _ in declared()}
    assert classes - {kind.__name__ for kind in NAMES.values()} == reached_by_chains_alone


@for_each(
    "text, problem",
    [
        ("data.robot.nmae", "RobotData has no key 'nmae'"),
        ("this.data?.robot.nmae", "RobotData has no key 'nmae'"),
        ("`a ${data.jonits.length} b`", "Payload has no key 'jonits'"),
        ("data.joints[0].axes", "JointData has no key 'axes'"),
        ("data.joints.map((joint) => joint.axes)", "JointData has no key 'axes'"),
        ("data.joints.filter((joint) => joint.q).map(({ axes }) => axes)", "JointData has no key 'axes'"),
        ("for (const joint of data.joints) use(joint.axes)", "JointData has no key 'axes'"),
        (
            "const { findings } = data.check; findings.map((finding) => finding.lnk)",
            "FindingData has no key 'lnk'",
        ),
        ("for (const j of this.data.joints) j.axes", "'j' stands for JointData"),
        ("data.joints.find((one) => one.q)", "'one' stands for JointData"),
        ("const r = data.robot; r.nmae", "'r' stands for RobotData"),
        ("const { robto } = data", "Payload has no key 'robto'"),
        ("solid.userData.rloe", "NodeData has no key 'rloe'"),
        ("data['robot']", "a key of Payload is computed"),
    ],
)
def test_wrong_names_would_be_found(text, problem):
    assert problem in read(text).problems


@for_each(
    "text",
    ["// data.nothing", "/* data.nothing */ 1", "'data.nothing'", "x = /data.nothing/g", "`data.nothing`"],
)
def test_comments_and_strings_are_not_read(text):
    assert read(text).problems == []


def test_templates_and_numbers_are_taken_apart():
    assert tokens("`a${b.c + `${d}`}` + 1.5e-3") == [
        "0",
        ";",
        "b",
        ".",
        "c",
        "+",
        "0",
        ";",
        "d",
        ";",
        ";",
        "+",
        "0",
    ]


# Every object that JSON.parse makes refuses keys that it has not.
STRICT = """() => {
  window.missing = [];
  const parse = JSON.parse, known = new WeakMap();
  const plain = (value) => typeof value !== 'object' || value === null
    || (Array.isArray(value) && value.every((x) => typeof x !== 'object'));
  const strict = (value, path) => {
    if (plain(value)) return value;
    if (!known.has(value)) known.set(value, watched(value, path));
    return known.get(value);
  };
  const watched = (value, path) => new Proxy(value, {
    get(target, key) {
      if (typeof key === 'symbol' || Array.isArray(target)) {
        const found = Reflect.get(target, key);
        return typeof found === 'function' ? found : strict(found, path);
      }
      if (!(key in target) && !['toJSON', 'then'].includes(key)) window.missing.push(`${path}.${key}`);
      return strict(target[key], `${path}.${key}`);
    },
  });
  JSON.parse = (text) => strict(parse(text), 'data');
}"""


@pytest.mark.browser
def test_running_scripts_read_existing_keys_only(chromium, fall, tmp_path):
    robot = pendulum()
    stopped = dataclasses.replace(
        fall, summary={**fall.summary, "stopped": {"time": 1.0, "reason": "a", "remedy": "b"}}
    )
    vars(stopped)["contacts"] = fall.contacts
    pages = [
        write_page(stopped, tmp_path / "fall.html"),
        write_check_page(robot, [], tmp_path / "check.html"),
    ]
    for path in pages:
        watch = Watch(chromium)
        watch.page.add_init_script(f"({STRICT})()")
        page = watch.open(path)
        for button in page.locator("#switches button").all():
            button.click()
        for tab in page.get_by_role("tab").all():
            tab.click()
            for which in page.locator("select.which:visible").all():
                for name in which.locator("option").all_inner_texts():
                    which.select_option(name)
            for choice in page.locator(".segments:visible button").all():
                choice.click()
        page.get_by_role("tab", name="Structure").click()
        page.locator(".row").nth(1).hover()
        page.mouse.move(400, 400)
        page.wait_for_timeout(100)
        assert page.evaluate("[...new Set(window.missing)]") == []
        watch.judge()
