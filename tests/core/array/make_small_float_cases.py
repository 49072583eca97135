"""Writes small_float_cases.tsv: every code of the small floats, and doubles with their nearest code, from ml_dtypes.

    python make_small_float_cases.py [OUTPUT]          (default: tests/data/small_float_cases.tsv.tar.xz)
"""
import os
import struct
import sys

import ml_dtypes
import numpy as np

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "data"))

import recordings  # noqa: E402

NAMES = ["float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn",
         "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu"]


def hexadecimal(value):
    return struct.pack(">d", value).hex()


lines = ["# decode: dtype, value of each code as the bits of a double; encode: dtype, bits of a double, nearest code"]
for name in NAMES:
    dtype = np.dtype(getattr(ml_dtypes, name))
    codes = np.arange(2 ** ml_dtypes.finfo(dtype).bits).astype(np.uint8)
    values = codes.view(dtype).astype(np.float64)
    lines.append("\t".join(["decode", name] + ["nan" if np.isnan(v) else hexadecimal(v) for v in values]))
    finite = np.sort(values[np.isfinite(values)], kind="stable")  # a vectorised sort may give a zero the sign of another
    top = finite[-1]
    inputs = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e300, -1e300, 1e-300, top, top * 1.01, top * 1.03, top * 1.06, top * 1.12, top * 1.25, top * 1.5, -top * 1.5,
              top * 2, 5e-324, -1.0, 2.0**-126, 2.0**-127, 1.5 * 2.0**-127, 2.0**-128, 1.5 * 2.0**-128, 2.0**-129]
    middles = ((finite[1:] + finite[:-1]) / 2)[:: 1 if len(finite) < 64 else 5]
    inputs += list(middles) + list(middles * (1 + 2.0**-20)) + list(middles * (1 - 2.0**-20))
    # ml_dtypes rounds doubles to float32 first; XLA, and we, round once. With float32 inputs the results are the same.
    for value in np.asarray(inputs).astype(np.float32).astype(np.float64):
        if name == "float8_e8m0fnu" and 0 < abs(value) < 2.0**-126 and np.frexp(value)[0] not in (0.5, 0.75):
            continue  # ml_dtypes does not round float32 subnormals to the nearest here
        code = np.asarray(value, np.float64).astype(dtype).view(np.uint8)
        lines.append("\t".join(["encode", name, hexadecimal(value), str(int(code))]))
for value in [0.0, -0.0, np.inf, -np.inf, np.nan, 65519.0, 65519.999, 65520.0, 1 + 2.0**-11, 1 + 2.0**-11 + 2.0**-40, 1 + 3 * 2.0**-11, 2.0**-24, 2.0**-25,
              2.0**-25 + 2.0**-60, 2.0**-14 - 2.0**-26, 6.1e-5, -1e-300, 0.1, 1 / 3, -2.7, 1e5]:
    code = np.float64(value).astype(np.float16).view(np.uint16)
    lines.append("\t".join(["encode", "float16", hexadecimal(value), str(int(code))]))
    code = np.float64(value).astype(ml_dtypes.bfloat16).view(np.uint16)
    lines.append("\t".join(["encode", "bfloat16", hexadecimal(value), str(int(code))]))
recordings.write(recordings.output("small_float_cases.tsv"), "\n".join(lines) + "\n")
