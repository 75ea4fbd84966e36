"""What a page answers at a glance: the usual questions, what was assumed, how the books close."""

from __future__ import annotations

from collections.abc import Sequence

from robokit.contact.measures import Answer, Event
from robokit.sim.joints.joint_law import assumed_damping
from robokit.sim.record import Trajectory
from robokit.sim.run.run_arguments import LARGEST_CONTACT_STEP
from robokit.sim.run.run_warnings import UNBALANCED
from robokit.sim.starts.start_checks import DEEP
from robokit.viewer.payload_keys import AnswerData


def answer_rows(answers: Sequence[Answer], kept: Sequence[Event]) -> list[AnswerData]:
    """The answers, with the places of their events among those of the page.

    Args:
        answers: of the run.
        kept: the page's events; those of the answers are among them.
    """
    places = {id(event): k for k, event in enumerate(kept)}
    return [
        AnswerData(x.label, x.value, x.note, None if x.event is None else places[id(x.event)], False)
        for x in answers
    ]


def assumed(trajectory: Trajectory) -> list[AnswerData]:
    """The assumptions of the run, in words; doubtful ones are marked."""
    s, rows = trajectory.summary, []

    def say(label: str, value: str, note: str = "", doubtful: bool = False) -> None:
        rows.append(AnswerData(label, value, note, None, doubtful))

    if "dt" in s:
        note = "chosen for the robot" if s.get("dt_chosen") else "as given"
        long = trajectory.ground is not None and s["dt"] > LARGEST_CONTACT_STEP
        if long:
            note = f"long for contact: take {1e3 * LARGEST_CONTACT_STEP:g} ms or less"
        say("time step", f"{1e3 * s['dt']:g} ms", note, long)
    if s.get("interrupted"):
        say("ended", f"at {trajectory.t[-1]:.4g} s", "interrupted early", True)
    if "integrator" in s:
        say("method", str(s["integrator"]))
    robot = trajectory.robot
    pairs = s.get("self_collision_pairs", 0)
    if pairs:
        say("self-collision", "on", f"{pairs} pair{'s' if pairs > 1 else ''} of bodies")
    elif robot is not None and robot.nbodies > 1:
        say("self-collision", "off", "links of the robot pass through each other")
    if s.get("default_damping"):
        words = assumed_damping(s["default_damping"])
        joints = s.get("default_damping_joints", 0)
        say("damping", words, f"assumed in {joints} joint{'' if joints == 1 else 's'} that have none")
    if trajectory.ground is not None:
        mu = trajectory.ground.friction
        say("friction", f"{mu:.3g}" if isinstance(mu, (int, float)) else "by link", "of the ground")
    if s.get("shape_error"):
        say("shapes", f"within {1e3 * s['shape_error']:.2g} mm", "of the convex hulls of meshes")
    return rows


def books(trajectory: Trajectory) -> list[AnswerData]:
    """Errors of the energy and momentum balance, and the depth of contacts."""
    s, rows = trajectory.summary, []

    def say(label: str, value: str, note: str = "", doubtful: bool = False) -> None:
        rows.append(AnswerData(label, value, note, None, doubtful))

    if "energy_balance" in s:
        error, moved = s["energy_balance"], s.get("energy_exchanged", 0.0)
        share = f"{100 * error / moved:.2g} % of the energy that moved" if moved > 0.0 else ""
        say("energy", f"{error:.3g} J", share, moved > 0.0 and error > UNBALANCED * moved)
    if "momentum_balance_linear" in s:
        say("momentum", f"{s['momentum_balance_linear']:.3g} N s", "largest error")
        say("angular", f"{s['momentum_balance_angular']:.3g} N m s", "largest error of the angular momentum")
    for key, unit, what in CORRECTED:
        if s.get(key):
            say("corrected", f"{s[key]:.3g} {unit}", f"{what}, summed over the steps")
    for key, what in TAKEN:
        if s.get(key):
            say(what, f"{s[key]:.4g} J", "dissipated")
    if "deepest_penetration" in s:
        deep = s["deepest_penetration"]
        say("deepest point", f"{1e3 * deep:.2g} mm", "up to 10 mm is fine", deep > DEEP)
    if "residual_largest" in s:
        say("residual", f"{s['residual_largest']:.2g}", "largest, relative to the impulses of a step")
    if s.get("steps_not_settled"):
        say("unconverged", f"{s['steps_not_settled']}", "steps that did not converge", True)
    if "loop_gap" in s:
        say("loops", f"{s['loop_gap']:.2g} m", "largest gap")
    return rows


CORRECTED = (
    ("energy_corrected", "J", "energy"),
    ("momentum_corrected_linear", "N s", "momentum"),
    ("momentum_corrected_angular", "N m s", "angular momentum"),
)
"""Entries of the summary, their units, and what was corrected."""

TAKEN = (
    ("dissipated_by_contact", "in contacts"),
    ("dissipated_by_friction", "in joints"),
    ("dissipated_by_stops", "at stops"),
    ("dissipated_by_collision", "between links"),
)
"""Entries of the summary [J], and where that energy went."""
