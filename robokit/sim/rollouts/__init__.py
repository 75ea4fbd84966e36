"""Many states of one robot through time at once.

rollout_function  rollout(robot, q0, v0, ...) -> Rollout
rollout_batch     the rows of a rollout: their present states and records
card_states      rows that are stepped together on a card
many_states      rows that are stepped together, as their caller says
"""

from robokit.sim.rollouts.rollout_function import Rollout, rollout

__all__ = ["Rollout", "rollout"]
