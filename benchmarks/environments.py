"""Steps a second of robokit's environments, beside Gymnasium's humanoid of MuJoCo in the same process.

python benchmarks/environments.py [number of environments]

Both take random actions, five steps of 3 ms each, and begin anew where an episode is over. Measured is the
processor time of all threads, the least of interleaved repeats. robokit's humanoid has 37 degrees of freedom
and touches itself, MuJoCo's has 23.
"""

from __future__ import annotations

import sys
import time

import gymnasium
from measure import machine, prepare_to_measure

import robokit.gym

STEPS, REPEATS = 20, 5


def main(count: int) -> None:
    """Print the table."""
    names = [*(f"robokit/{name}-v0" for name in robokit.gym.TASKS), "Humanoid-v5"]
    each = {name: gymnasium.make_vec(name, num_envs=count) for name in names}
    best = dict.fromkeys(names, float("inf"))
    for _ in range(REPEATS):
        for name, envs in each.items():
            envs.reset(seed=0)
            envs.action_space.seed(0)
            actions = [envs.action_space.sample() for _ in range(STEPS)]
            begun = time.process_time()
            for action in actions:
                envs.step(action)
            best[name] = min(best[name], time.process_time() - begun)
    print(machine())
    for name, seconds in best.items():
        print(f"  {name:22} {count * STEPS / seconds:9,.0f} steps a second of processor, {count} at once")


if __name__ == "__main__":
    prepare_to_measure()
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 64)
