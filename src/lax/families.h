// The families of primitives: each function lists the records of one file family; catalog.cpp joins them.
#pragma once

#include <capibara/primitive.h>

namespace capibara {

using Family = std::vector<PrimitiveRecord>;

Family elementwise_family();  // unary, binary, comparison, bits, conversion, select, clamp
Family special_family();      // error, gamma, beta, bessel, zeta functions
Family shape_family();        // broadcast, reshape, transpose, pad, concatenate, rev, iota, split, copy...
Family index_family();        // slice, dynamic slices, gather, scatter
Family reduce_family();       // reductions and arg reductions; reduce_precision is elementwise
Family window_family();       // reduce_window, select_and_scatter, select_and_gather_add, cumulative operations
Family sort_family();         // sort, top_k, approx_top_k
Family contract_family();     // dot_general, ragged_dot, convolution
Family control_family();      // jit, scan, while, cond, checkpoint, custom_jvp_call, custom_vjp_call, linear_solve...
Family random_family();       // threefry2x32, random_bits, key wrapping, rng_bit_generator, random_gamma
Family linalg_family();       // decompositions and triangular solves
Family fft_family();
Family collective_family();  // psum and the other collectives, axis_index
Family sharding_family();    // sharding_constraint
Family effect_family();      // callbacks, debug prints, refs, tokens, custom_call, barriers

using FamilyMaker = Family (*)();
std::span<const FamilyMaker> primitive_families();  // those linked into the program, in order: src/assembly

}  // namespace capibara
