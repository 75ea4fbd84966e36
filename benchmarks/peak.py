"""What a core can do at most: multiply-adds in registers, and bytes to and from memory."""

from __future__ import annotations

import ctypes

import llvmlite.binding as llvm
import numpy as np
from measure import minima

from robokit.engine.backend.llvm import Loaded, assemble, vector_width

CHAINS = 12
ROUNDS = 100_000


def flops_per_second() -> float:
    """Floating-point operations per second of one core, two a multiply-add."""
    width = vector_width()
    t = f"<{width} x double>"
    ks = range(CHAINS)
    phis = "\n".join(f"  %a{k} = phi {t} [splat (double 1.0), %entry], [%b{k}, %loop]" for k in ks)
    operation = f"call {t} @llvm.fma.v{width}f64"
    steps = "\n".join(f"  %b{k} = {operation}({t} %a{k}, {t} %a{k}, {t} %a{k})" for k in ks)
    stores = "\n".join(f"  store volatile {t} %b{k}, ptr %out, align 8" for k in ks)
    text = f"""
declare {t} @llvm.fma.v{width}f64({t}, {t}, {t})
define void @peak(i64 %n, ptr %out) #0 {{
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%j, %loop]
{phis}
{steps}
  %j = add i64 %i, 1
  %more = icmp ult i64 %j, %n
  br i1 %more, label %loop, label %done
done:
{stores}
  ret void
}}
attributes #0 = {{ "prefer-vector-width"="512" }}
"""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    code = Loaded(assemble(text))
    run = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p)(code.address("peak"))
    out = (ctypes.c_double * width)()
    best = minima({"": lambda: run(ROUNDS, ctypes.addressof(out))}, 0.5)[""]
    return ROUNDS * CHAINS * width * 2 / best


def bytes_per_second() -> float:
    """Bytes read and written per second of one core, in a copy of 64 MB."""
    source, target = np.ones(8_000_000), np.ones(8_000_000)
    return 2 * source.nbytes / minima({"": lambda: np.copyto(target, source)}, 0.5)[""]
