"""The array operations that the peer counts with, over NumPy, CuPy and PyTorch.

NumPy proves the answers where there is no GPU; CuPy and PyTorch are timed on one.
"""

import numpy

# Rows of a block of the one-hot product.
BLOCK = 1 << 16


class Absent(Exception):
    """A library or its device is not on this machine."""


class Numpy:
    """NumPy, and CuPy, which has the same functions under the same names."""

    def __init__(self, module=numpy):
        self.module = module
        self.library = f"{module.__name__} {module.__version__}"
        self.device = "cpu"
        # Accumulates zeros and ones exactly up to 2^24.
        self.one_hot_type = module.float32

    def upload(self, array):
        return self.module.asarray(array)

    def download(self, array):
        return numpy.asarray(array)

    def wait(self):
        pass

    def release(self):
        pass

    def wide(self, array):
        return array.astype(self.module.int64)

    def zeros(self, count):
        return self.module.zeros(count, dtype=self.module.int32)

    def bincount(self, keys, cells):
        return self.module.bincount(keys, minlength=cells)

    def distinct(self, keys):
        return self.module.unique(keys)

    def distinct_counts(self, keys):
        return self.module.unique(keys, return_counts=True)[1]

    def numbered(self, keys):
        """The number of each key among the distinct ones, and how many those are."""
        values, numbers = self.module.unique(keys, return_inverse=True)
        return numbers.reshape(-1), len(values)

    def marks(self, count, places):
        marks = self.module.zeros(count, dtype=bool)
        marks[places] = True
        return marks

    def smallest(self, array, axis):
        return array.min(axis=axis)

    def where(self, condition, one, other):
        return self.module.where(condition, one, other)

    def stack(self, arrays):
        return self.module.stack(arrays, axis=1)

    def concatenate(self, arrays):
        return self.module.concatenate(arrays)

    def one_hot_product(self, codes, values):
        """How often each two of all values meet in a row. `codes` number the values of all columns together."""
        met = self.module.zeros((values, values), dtype=self.module.int64)
        for begin in range(0, codes.shape[1], BLOCK):
            part = codes[:, begin : begin + BLOCK]
            hot = self.module.zeros((values, part.shape[1]), dtype=self.one_hot_type)
            hot[part, self.module.arange(part.shape[1])[None, :]] = 1
            met += (hot @ hot.T).astype(self.module.int64)
        return met


class Cupy(Numpy):
    def __init__(self):
        try:
            import cupy
        except ImportError as error:
            raise Absent(f"CuPy is not installed: {error}") from error
        super().__init__(cupy)
        try:
            self.device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
        except cupy.cuda.runtime.CUDARuntimeError as error:
            raise Absent(f"CuPy finds no CUDA device: {error}") from error

    def download(self, array):
        return self.module.asnumpy(array)

    def wait(self):
        self.module.cuda.get_current_stream().synchronize()

    def release(self):
        self.module.get_default_memory_pool().free_all_blocks()


class Torch:
    def __init__(self, device):
        try:
            import torch
        except ImportError as error:
            raise Absent(f"PyTorch is not installed: {error}") from error
        if device == "cuda" and not torch.cuda.is_available():
            raise Absent("PyTorch finds no CUDA device")
        self.torch = torch
        self.place = torch.device(device)
        self.library = f"torch {torch.__version__}"
        self.device = torch.cuda.get_device_name(0) if device == "cuda" else "cpu"

    def upload(self, array):
        return self.torch.from_numpy(numpy.ascontiguousarray(array)).to(self.place)

    def download(self, array):
        return array.cpu().numpy()

    def wait(self):
        if self.place.type == "cuda":
            self.torch.cuda.synchronize()

    def release(self):
        if self.place.type == "cuda":
            self.torch.cuda.empty_cache()

    def wide(self, array):
        return array.to(self.torch.int64)

    def zeros(self, count):
        return self.torch.zeros(count, dtype=self.torch.int32, device=self.place)

    def bincount(self, keys, cells):
        return self.torch.bincount(keys, minlength=cells)

    def distinct(self, keys):
        return self.torch.unique(keys)

    def distinct_counts(self, keys):
        return self.torch.unique(keys, return_counts=True)[1]

    def numbered(self, keys):
        values, numbers = self.torch.unique(keys, return_inverse=True)
        return numbers, len(values)

    def marks(self, count, places):
        marks = self.torch.zeros(count, dtype=self.torch.bool, device=self.place)
        marks[places] = True
        return marks

    def smallest(self, array, axis):
        return self.torch.amin(array, dim=axis)

    def where(self, condition, one, other):
        return self.torch.where(condition, one, other)

    def stack(self, arrays):
        return self.torch.stack(arrays, dim=1)

    def concatenate(self, arrays):
        return self.torch.cat(arrays)

    def one_hot_product(self, codes, values):
        torch = self.torch
        # The integer product of the tensor cores takes multiples of 8, more than 16 of them.
        width = max(24, -(-values // 8) * 8)
        met = torch.zeros((width, width), dtype=torch.int32, device=self.place)
        for begin in range(0, codes.shape[1], BLOCK):
            part = codes[:, begin : begin + BLOCK].to(torch.int64)
            rows = -(-part.shape[1] // 8) * 8
            hot = torch.zeros((width, rows), dtype=torch.int8, device=self.place)
            hot[:, : part.shape[1]].scatter_(0, part, 1)
            met += torch._int_mm(hot, hot.t())
        return met


def arrays(name, device):
    """The library of that name; `auto` takes PyTorch, then CuPy."""
    if name == "numpy":
        return Numpy()
    if name == "torch":
        return Torch(device)
    if name == "cupy":
        return Cupy()
    reasons = []
    for make in (lambda: Torch(device), Cupy):
        try:
            return make()
        except Absent as absent:
            reasons.append(str(absent))
    raise Absent("; ".join(reasons))
