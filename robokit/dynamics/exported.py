"""Functions in other languages and libraries: methods of :class:`Function`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from robokit.dynamics.build import Key
from robokit.dynamics.codegen import codegen
from robokit.dynamics.differentiate import Flat
from robokit.dynamics.host_functions import HostFunction, check_one_sample, host_function
from robokit.dynamics.other_libraries import casadi_function, jax_function, torch_function
from robokit.dynamics.own_text import sized
from robokit.dynamics.regrouped_trees import parameters_for
from robokit.dynamics.table import Algorithm
from robokit.engine.trace.program import Program
from robokit.model.robot import Robot, check_robot


class Exports(ABC):
    """Export of a function to C, CasADi, JAX and PyTorch."""

    name: str
    row: Algorithm
    _special: Mapping[str, Any]

    @abstractmethod
    def key(self, robot: Robot, **choices: Any) -> Key:
        """Of its kernels."""

    @abstractmethod
    def flat(self, robot: Robot, **choices: Any) -> Flat:
        """Its text on flat arrays."""

    @abstractmethod
    def program(self, robot: Robot, **choices: Any) -> Program:
        """The recorded graph."""

    def codegen(
        self, robot: Robot, folder: Any = ".", *, dtype: Any = None, **choices: Any
    ) -> tuple[Path, Path, Path]:
        """Write it as C99: see :func:`robokit.codegen`.

        Args:
            robot: the robot.
            folder, dtype: as in :func:`robokit.codegen`.
            choices: what it is about, by name.

        Returns:
            the paths of the header, the source and the checking program.

        Example:
            >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
            >>> [path.name for path in rk.functions["crba"].codegen(robot, "c_code")]
            ['double_pendulum_crba.h', 'double_pendulum_crba.c', 'double_pendulum_crba_test.c']
        """
        return codegen(robot, self, folder, dtype=dtype, **choices)

    def to_casadi(self, robot: Robot, **choices: Any) -> Any:
        """The operations as a ``casadi.Function`` of named inputs and outputs; CasADi differentiates them.

        Arrays of more than two axes become matrices of their last one. Quaternions are taken to be unit.

        Args:
            robot: the robot.
            choices: what it is about, by name.

        Raises:
            MissingDependency: CasADi is not installed.
            RobokitError: the robot has samples of inertias.

        Example:
            >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
            >>> crba = rk.functions["crba"].to_casadi(robot)
            >>> np.allclose(np.array(crba([0.5, 0.2])), rk.crba(robot, [0.5, 0.2]))
            True
        """
        check_robot(robot)
        check_one_sample(robot)
        made = self.flat(robot, **choices)
        shapes = [self._shape(robot, name, size) for name, size in made.sizes]
        own = robot.parameters is not None and self.row.inertial  # numbers, as the machine code takes them
        numbers = parameters_for(self.row, robot).tolist() if own else ()
        return casadi_function(self.name, made, self.program(robot, **choices), shapes, numbers)

    def to_jax(self, robot: Robot, *, mode: str = "reverse", **choices: Any) -> Callable[..., Any]:
        """A function of JAX arrays of one state, for ``jax.jit``, ``jax.vmap`` (batches) and ``jax.grad``.

        It calls the machine code on the processor, in double precision; where JAX computes on a graphics card
        (:doc:`/gpu`) it runs there, inside the compiled program, in float32 or float64 as its arrays are. Its
        derivative is robokit's, of any order. By coordinates of a quaternion it is that of the function of
        the quaternion made unit.

        Args:
            robot: the robot.
            mode: "reverse" for ``jax.grad``, ``jax.vjp`` and ``jax.jacrev``, "forward" for ``jax.jvp`` and
                ``jax.jacfwd``.
            choices: what it is about, by name.

        Raises:
            MissingDependency: JAX is not installed.
            ShapeError: at a call: another shape, or JAX's double precision is off.
            TypeError: in ``jax.jvp``, ``jax.jacfwd`` or ``jax.hessian``, of a function of the mode "reverse".

        Example:
            >>> import jax
            >>> jax.config.update("jax_enable_x64", True)
            >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
            >>> height = rk.functions["potential_energy"].to_jax(robot)
            >>> np.allclose(jax.grad(height)(np.array([0.5, 0.2])), rk.gravity_forces(robot, [0.5, 0.2]))
            True
        """
        return jax_function(self.name, self._host(robot, choices), mode)

    def to_torch(self, robot: Robot, **choices: Any) -> Callable[..., Any]:
        """A function of PyTorch tensors of float64, of one state or with any leading axes, for autograd.

        It calls the machine code on the processor; tensors on a graphics card (:doc:`/gpu`), of float32 too,
        are computed there. Its derivative is robokit's, of any order; quaternions as in :meth:`to_jax`.

        Args:
            robot: the robot.
            choices: what it is about, by name.

        Raises:
            MissingDependency: PyTorch is not installed.
            ShapeError: at a call: another shape, or tensors of another dtype.

        Example:
            >>> import torch
            >>> robot = rk.load_urdf(rk.find_robot("double_pendulum"))
            >>> q = torch.tensor([0.5, 0.2], dtype=torch.float64, requires_grad=True)
            >>> rk.functions["potential_energy"].to_torch(robot)(q).backward()
            >>> np.allclose(q.grad, rk.gravity_forces(robot, [0.5, 0.2]))
            True
        """
        return torch_function(self.name, self._host(robot, choices))

    def _host(self, robot: Robot, choices: dict[str, Any]) -> HostFunction:
        made = self.flat(robot, **choices)
        shapes = {name: self._shape(robot, name, size) for name, size in made.sizes}
        return host_function(robot, self.key(robot, **choices), shapes)

    def _shape(self, robot: Robot, name: str, size: int) -> tuple[int, ...]:
        """Of an input of one state."""
        space = self._special.get(name)
        if space == "f_ext":
            return (robot.nbodies + 1, 6)
        return sized(space, robot) if isinstance(space, tuple) else (size,)
