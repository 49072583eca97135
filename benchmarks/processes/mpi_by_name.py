"""MPI_Allreduce through ctypes, by the names that Open MPI's library exports."""

import atexit
import ctypes
import ctypes.util

import numpy


def all_reduce(size):
    library = ctypes.CDLL(ctypes.util.find_library("mpi") or "libmpi.so.40", mode=ctypes.RTLD_GLOBAL)

    def object_named(name):
        return ctypes.byref(ctypes.c_char.in_dll(library, name))
    world, floats, add = (object_named(name) for name in ("ompi_mpi_comm_world", "ompi_mpi_float", "ompi_mpi_op_sum"))
    library.MPI_Init(None, None)
    atexit.register(library.MPI_Finalize)
    given, summed = numpy.ones(size // 4, numpy.float32), numpy.empty(size // 4, numpy.float32)

    def call():
        status = library.MPI_Allreduce(ctypes.c_void_p(given.ctypes.data), ctypes.c_void_p(summed.ctypes.data), given.size, floats, add,
                                       world)
        assert status == 0, status
    return call
