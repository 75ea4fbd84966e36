"""The farthest of ten thousand falls, with PyTorch.

How far can a limp humanoid throw itself with 300 J? Ten thousand of them start on a graphics card, each with
speeds of its own, and fall for a second. The next ten thousand start around the farthest five in a hundred
(the cross-entropy method). All stays on the card: v0 is a tensor there, so sim.q is one too.

    sim = rk.Simulation(robot, q0, v0, batch=10_000, ground=True, device="cuda", dtype="float32")
    sim.step(steps=1000);  reach = sim.q[:, 4]

It takes `pip install 'robokit[cuda,torch]'`. Without a card the same program runs on the processor, with 200
humanoids. The page shows the farthest fall; its ghost is the farthest of the first round.

Check: the average of the last round is half a metre beyond that of the first, no row failed, both started
with 300 J, and the farthest fall is as far in rk.simulate, on the processor and in double precision.
"""

import argparse
import webbrowser
from pathlib import Path

import torch

import robokit as rk
from robokit.viewer import compare

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--headless", action="store_true", help="only write the page")
parser.add_argument("--output", type=Path, default=Path("farthest.html"), metavar="FILE")
parser.add_argument("--falls", type=int, help="at once; default 10000 on a card, 200 on the processor")
parser.add_argument("--rounds", type=int, default=6, help="default 6")
arguments, card = parser.parse_args(), torch.cuda.is_available()
where, real, falls = ("cuda", "float32", 10_000) if card else ("cpu", "float64", 200)
falls = arguments.falls or falls
print(f"{falls} falls at once on {'a card' if card else 'the processor: there is no card'}")

robot = rk.load_urdf(rk.find_robot("humanoid"), base="floating")
q0 = rk.standing_configuration(robot)
H = torch.tensor(rk.crba(robot, q0), device=where, dtype=getattr(torch, real))
mean, spread, averages, farthest = 0.0 * H[0], 1.0, [], []
for k in range(arguments.rounds):
    torch.manual_seed(k)
    v0 = mean + spread * torch.randn(falls, robot.nv, device=where, dtype=H.dtype)
    v0 *= (2.0 * 300.0 / ((v0 @ H) * v0).sum(dim=1, keepdim=True)).sqrt()
    sim = rk.Simulation(robot, q0, v0, batch=falls, ground=True, device=where, dtype=real)
    sim.step(steps=1000)
    reach = torch.as_tensor(sim.q)[:, 4]
    best = v0[reach.topk(max(8, falls // 20)).indices]
    mean, spread = best.mean(dim=0), best.std(dim=0)
    averages.append(reach.mean().item())
    farthest.append((reach.max().item(), best[0].double().cpu().numpy()))
    print(f"round {k + 1}: {averages[k]:.2f} m on average, {farthest[k][0]:.2f} m at most")

reached, v = max(farthest, key=lambda each: each[0])
runs = [rk.simulate(robot, q0, start, duration=1.0, ground=True) for start in (v, farthest[0][1])]
compare(*runs, arguments.output, labels=("the farthest", "the farthest of the first round"))
if not arguments.headless:
    webbrowser.open(arguments.output.resolve().as_uri())
again = runs[0].q[-1, 4]
assert averages[-1] > averages[0] + 0.5 and not sim.failed.any(), "no progress"
assert max(abs(run.energy.kinetic[0] - 300.0) for run in runs) < 0.1, (
    "the farthest had more energy than the others"
)
assert abs(again - reached) < (0.3 if card else 1e-9), "the fall is another one on the processor"
