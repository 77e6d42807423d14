"""Rows of a weight matrix that decide whether two quantizers follow one rule.

`mxfp4_rows` and `fp8_rows` give {what it is: 64 values in float64} for a source of some dtype; the
values that matter are exact in bf16 where the name says tie.  `plant` writes such rows over those
of a matrix.
"""
import numpy as np

LENGTH = 64
# Half way between two neighbouring codes, and the last one that does not clip.
TIES = (0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, 6.0)


def mxfp4_rows(g, _dtype):
    def signs():
        return g.choice([-1.0, 1.0], LENGTH)

    rows = {
        "normal": g.standard_normal(LENGTH) * 0.02,
        "student t3": g.standard_t(3, LENGTH) * 0.01,
        "cauchy": g.standard_cauchy(LENGTH),
        "one outlier": np.r_[6.0, g.standard_normal(LENGTH - 1) * 0.02],
        "zero": np.zeros(LENGTH),
        "minus zero": np.full(LENGTH, -0.0),
        "a zero block": np.r_[np.zeros(32), g.standard_normal(32)],
        "largest bf16": np.tile([3.3895313892515355e38, -1e38], LENGTH // 2),
    }
    for exponent in (0, -20, 40, -100, 100):
        rows[f"ties 2^{exponent}"] = np.tile(TIES, 8) * signs() * 2.0**exponent
    # Where the exponent's rule switches, and where values begin to clip.
    for largest in (3.5, 3.484375, 4.0, 6.0, 6.5, 6.96875, 7.0, 7.03125):
        rows[f"largest {largest}"] = np.tile(np.r_[largest, np.full(31, -0.24)], 2) * signs()
    # Subnormal numbers up to the first ordinary scale, and the last scales.
    for exponent in (-149, -140, -133, -128, -127, -126, -125, -124, -123, 100, 125, 126, 127):
        row = g.uniform(-1, 1, LENGTH) * 2.0**exponent
        row[[0, 32]] = 1.5 * 2.0**exponent, -1.75 * 2.0**exponent
        rows[f"largest 1.75 * 2^{exponent}"] = row
    return rows


def fp8_rows(g, dtype):
    """Quark divides by 0 where a scale rounds to 0 in this dtype; rows that small are for F32."""
    rows = {f"normal {size}": g.standard_normal(LENGTH) * size for size in (0.02, 1.0, 1e-3, 30.0)}
    rows["zero"] = np.zeros(LENGTH)
    rows["minus zero"] = np.full(LENGTH, -0.0)
    rows["cauchy"] = g.standard_cauchy(LENGTH) * 0.01
    # A largest value of 448 makes the scale 1: then these are ties, subnormals and neighbours.
    tie = [448.0, 17, 19, -17, -19, 2.0**-10, -(2.0**-10), 3 * 2.0**-10, -447, 1.0625, 1.1875]
    row = np.r_[tie, np.arange(LENGTH - len(tie)) * 0.37]
    for exponent in (0, -8, 6):
        rows[f"ties 2^{exponent}"] = row * 2.0**exponent
    smallest = (-135, -148) if dtype == "F32" else ()
    for exponent in (-120, 126, *smallest):
        rows[f"uniform 2^{exponent}"] = g.uniform(-1, 1, LENGTH) * 2.0**exponent
    return rows


def plant(matrix, rows, first, largest):
    """Rows of `matrix` from the top become rows number `first` and on, repeated to its width; such
    as hold more than `largest` are passed over.  Returns how many were planted."""
    fitting = [row for row in rows.values() if np.abs(row).max() <= largest]
    count = min(matrix.shape[0], len(fitting))
    for i in range(count):
        matrix[i] = np.resize(fitting[(first + i) % len(fitting)], matrix.shape[1])
    return count
