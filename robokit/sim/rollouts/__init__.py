"""Many states of one robot through time at once.

rollout_function  rollout(robot, q0, v0, ...) -> Rollout
rollout_batch     the rows of a rollout: their present states and records
many_states      rows that are stepped together, as their caller says
rollout_forces    joint forces of a rollout
rollout_energy    rows whose energy has grown without a cause
row_ledgers       the ledgers of the rows at the end
"""

from robokit.sim.rollouts.rollout_function import Rollout, rollout

__all__ = ["Rollout", "rollout"]
