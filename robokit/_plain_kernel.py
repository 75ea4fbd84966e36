"""TEMPORARY until engine/kernel.py lands: the same calls on plain floats."""
import numpy as np
class Kernel:
    @classmethod
    def build(cls, name, inputs, outputs, text, key, quaternions=()):
        self = cls(); self.inputs, self.outputs, self.text = inputs, outputs, text; self.name = name
        return self
    def __call__(self, *args, out=None, **kw):
        from robokit.errors import ShapeError
        arrays = []
        for (n, k), a in zip(self.inputs, args):
            a = np.asarray(a, float)
            if a.ndim not in (1, 2) or a.shape[-1] != k:
                raise ShapeError(f"{n}: expected shape ({k},) or (B, {k}), got {a.shape}")
            arrays.append(a)
        batch = [a.shape[0] for a in arrays if a.ndim == 2]
        single = not batch
        B = batch[0] if batch else 1
        xs = [a.tolist() if single else list(np.broadcast_to(a, (B, a.shape[-1])).T) for a in arrays]
        res = self.text(*xs)
        outs = []
        for (n, shape), r in zip(self.outputs, res):
            if single: outs.append(np.array([float(x) for x in r]).reshape(shape))
            else: outs.append(np.stack([np.broadcast_to(x, (B,)) for x in r], -1).reshape(B, *shape))
        return outs[0] if len(outs) == 1 else tuple(outs)
