# Prints one function with StableHLO and CHLO operations in every form, as jaxlib's MLIR writes it: pretty and generic.
import pathlib

from jax._src.interpreters import mlir
from jax._src.lib.mlir import ir

HEADER = """
func.func private @declared(%a: tensor<2x3xf32>) -> tensor<f32>
sdy.mesh @mesh = <["x"=2]>
func.func @forms(%a: tensor<2x3xf32> {jax.name = "a"}, %t: tensor<3x2xf32>, %s: tensor<3x3xf32>, %z: tensor<f32>,
    %sh: tensor<2xi64>, %st: tensor<2xui64>, %tu: tuple<tensor<2x3xf32>, tensor<f32>>, %i: tensor<i32>,
    %ix: tensor<2xi32>, %p: tensor<i1>, %v: tensor<2xf32>, %c: tensor<2xcomplex<f32>>, %tok: !stablehlo.token)
    -> (tensor<2x3xf32> {jax.result_info = "result"}) {
"""

OPERATIONS = """
"stablehlo.create_token"() : () -> !stablehlo.token
"stablehlo.after_all"() : () -> !stablehlo.token
"stablehlo.after_all"(%tok, %tok) : (!stablehlo.token, !stablehlo.token) -> !stablehlo.token
"stablehlo.reduce_precision"(%a) {exponent_bits = 5 : i32, mantissa_bits = 2 : i32} : (tensor<2x3xf32>) -> tensor<2x3xf32>
"stablehlo.dot"(%a, %t) {precision_config = [#stablehlo<precision HIGH>, #stablehlo<precision DEFAULT>]} : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
"stablehlo.dot_general"(%a, %t) {dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision HIGH>, #stablehlo<precision DEFAULT>]} : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
"stablehlo.dot_general"(%a, %a) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>, algorithm = #stablehlo.dot_algorithm<lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false>} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2xf32>
"stablehlo.cholesky"(%s) {lower = true} : (tensor<3x3xf32>) -> tensor<3x3xf32>
"stablehlo.triangular_solve"(%s, %t) {left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : (tensor<3x3xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
"stablehlo.rng"(%z, %z, %sh) {rng_distribution = #stablehlo<rng_distribution UNIFORM>} : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<2x3xf32>
"stablehlo.rng_bit_generator"(%st) {rng_algorithm = #stablehlo<rng_algorithm DEFAULT>} : (tensor<2xui64>) -> (tensor<2xui64>, tensor<2x3xui32>)
"stablehlo.tuple"(%a, %z) : (tensor<2x3xf32>, tensor<f32>) -> tuple<tensor<2x3xf32>, tensor<f32>>
"stablehlo.get_tuple_element"(%tu) {index = 1 : i32} : (tuple<tensor<2x3xf32>, tensor<f32>>) -> tensor<f32>
"stablehlo.optimization_barrier"() : () -> ()
"stablehlo.optimization_barrier"(%a, %z) {foo = 1 : i32} : (tensor<2x3xf32>, tensor<f32>) -> (tensor<2x3xf32>, tensor<f32>)
"stablehlo.get_dimension_size"(%a) {dimension = 1 : i64} : (tensor<2x3xf32>) -> tensor<i32>
"stablehlo.set_dimension_size"(%a, %i) {dimension = 1 : i64} : (tensor<2x3xf32>, tensor<i32>) -> tensor<2x?xf32>
"stablehlo.einsum"(%a, %t) {einsum_config = "ab,bc->ac"} : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
"stablehlo.torch_index_select"(%a, %ix) {dim = 0 : i64, batch_dims = 0 : i64} : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<2x3xf32>
"stablehlo.broadcast"(%a) {broadcast_sizes = array<i64: 4>} : (tensor<2x3xf32>) -> tensor<4x2x3xf32>
"stablehlo.broadcast_in_dim"(%v) {broadcast_dimensions = array<i64: 1>} : (tensor<2xf32>) -> tensor<3x2xf32>
"stablehlo.dynamic_broadcast_in_dim"(%a, %sh) {broadcast_dimensions = array<i64: 0, 1>, known_expanding_dimensions = array<i64: 0>} : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<?x?xf32>
"stablehlo.iota"() {iota_dimension = 1 : i64} : () -> tensor<2x3xi32>
"stablehlo.dynamic_iota"(%sh) {iota_dimension = 0 : i64} : (tensor<2xi64>) -> tensor<?x?xf32>
"stablehlo.real_dynamic_slice"(%a, %sh, %sh, %sh) : (tensor<2x3xf32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x?xf32>
"stablehlo.dynamic_pad"(%a, %z, %sh, %sh, %sh) : (tensor<2x3xf32>, tensor<f32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x?xf32>
"stablehlo.pad"(%a, %z) {edge_padding_low = array<i64: 0, 1>, edge_padding_high = array<i64: -1, 2>, interior_padding = array<i64: 0, 1>} : (tensor<2x3xf32>, tensor<f32>) -> tensor<1x8xf32>
"stablehlo.gather"(%a, %ix) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>, indices_are_sorted = false} : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<2x3xf32>
"stablehlo.dynamic_gather"(%a, %ix, %sh) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false} : (tensor<2x3xf32>, tensor<2xi32>, tensor<2xi64>) -> tensor<2x?xf32>
"stablehlo.scatter"(%a, %ix, %a) ({^bb0(%x: tensor<f32>, %y: tensor<f32>): "stablehlo.return"(%y) : (tensor<f32>) -> ()}) {scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = true} : (tensor<2x3xf32>, tensor<2xi32>, tensor<2x3xf32>) -> tensor<2x3xf32>
"stablehlo.complex"(%z, %z) : (tensor<f32>, tensor<f32>) -> tensor<complex<f32>>
"stablehlo.real"(%c) : (tensor<2xcomplex<f32>>) -> tensor<2xf32>
"stablehlo.select"(%p, %a, %a) : (tensor<i1>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
"stablehlo.clamp"(%z, %a, %z) : (tensor<f32>, tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
"stablehlo.replica_id"() : () -> tensor<ui32>
"stablehlo.partition_id"() : () -> tensor<ui32>
"stablehlo.fft"(%a) {fft_type = #stablehlo<fft_type RFFT>, fft_length = array<i64: 3>} : (tensor<2x3xf32>) -> tensor<2x2xcomplex<f32>>
"stablehlo.compare"(%a, %a) {comparison_direction = #stablehlo<comparison_direction EQ>, compare_type = #stablehlo<comparison_type TOTALORDER>, foo = "x"} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
"stablehlo.compare"(%i, %i) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
"stablehlo.constant"() {value = dense<1.5> : tensor<f32>, foo = "x"} : () -> tensor<f32>
"stablehlo.constant"() {value = dense<[[1, -2], [3, 4]]> : tensor<2x2xi8>} : () -> tensor<2x2xi8>
"stablehlo.constant"() {value = dense<[(1.0, -2.0), (0x7F800000, 0.5)]> : tensor<2xcomplex<f32>>} : () -> tensor<2xcomplex<f32>>
"stablehlo.constant"() {value = dense<> : tensor<0x3xf16>} : () -> tensor<0x3xf16>
"stablehlo.constant"() {value = dense<[true, false]> : tensor<2xi1>} : () -> tensor<2xi1>
"stablehlo.exponential"(%a) {result_accuracy = #stablehlo.result_accuracy<atol = 1.0e-3, rtol = 0.0, ulps = 2, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
"stablehlo.add"(%a, %a) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<?x3xf32>
"stablehlo.add"(%a, %a) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
"stablehlo.convert"(%a) : (tensor<2x3xf32>) -> tensor<2x3xbf16>
"stablehlo.convert"(%a) : (tensor<2x3xf32>) -> tensor<2x3xf32>
"stablehlo.transpose"(%a) {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
"stablehlo.reverse"(%a) {dimensions = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
"stablehlo.reshape"(%a) : (tensor<2x3xf32>) -> tensor<6xf32>
"stablehlo.concatenate"(%a, %a) {dimension = 0 : i64} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
"stablehlo.dynamic_slice"(%v, %i) {slice_sizes = array<i64: 1>} : (tensor<2xf32>, tensor<i32>) -> tensor<1xf32>
"stablehlo.dynamic_slice"(%z) {slice_sizes = array<i64>} : (tensor<f32>) -> tensor<f32>
"stablehlo.dynamic_update_slice"(%v, %v, %i) : (tensor<2xf32>, tensor<2xf32>, tensor<i32>) -> tensor<2xf32>
"stablehlo.slice"(%z) {start_indices = array<i64>, limit_indices = array<i64>, strides = array<i64>} : (tensor<f32>) -> tensor<f32>
"stablehlo.slice"(%a) {start_indices = array<i64: 0, 1>, limit_indices = array<i64: 2, 3>, strides = array<i64: 1, 2>} : (tensor<2x3xf32>) -> tensor<2x1xf32>
"stablehlo.convolution"(%x4, %w4) {window_strides = array<i64: 2, 1>, padding = dense<[[1, 1], [0, 2]]> : tensor<2x2xi64>, lhs_dilation = array<i64: 1, 2>, rhs_dilation = array<i64: 2, 1>, window_reversal = array<i1: false, true>, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<1x3x15x4xf32>
"chlo.broadcast_add"(%z, %a) {broadcast_dimensions = array<i64>} : (tensor<f32>, tensor<2x3xf32>) -> tensor<2x3xf32>
"chlo.broadcast_compare"(%a, %a) {comparison_direction = #chlo<comparison_direction EQ>} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
"chlo.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
"chlo.constant_like"(%a) {value = 1.0 : f32} : (tensor<2x3xf32>) -> tensor<2x3xf32>
"chlo.is_inf"(%a) : (tensor<2x3xf32>) -> tensor<2x3xi1>
"chlo.zeta"(%a, %a) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
"chlo.top_k"(%a) {k = 2 : i64} : (tensor<2x3xf32>) -> (tensor<2x2xf32>, tensor<2x2xi32>)
"stablehlo.all_reduce"(%a) ({^bb0(%x: tensor<f32>, %y: tensor<f32>): "stablehlo.return"(%x) : (tensor<f32>) -> ()}) {replica_groups = dense<0> : tensor<1x1xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids} : (tensor<2x3xf32>) -> tensor<2x3xf32>
"stablehlo.sort"(%a) ({^bb0(%x: tensor<f32>, %y: tensor<f32>): %w = "stablehlo.compare"(%x, %y) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<f32>, tensor<f32>) -> tensor<i1> "stablehlo.return"(%w) : (tensor<i1>) -> ()}) {} : (tensor<2x3xf32>) -> tensor<2x3xf32>
"stablehlo.while"(%a) ({^bb0(%x: tensor<2x3xf32>): "stablehlo.return"(%p) : (tensor<i1>) -> ()}, {^bb0(%x: tensor<2x3xf32>): "stablehlo.return"(%x) : (tensor<2x3xf32>) -> ()}) {foo = 3 : i32} : (tensor<2x3xf32>) -> tensor<2x3xf32>
"stablehlo.while"(%a, %i) ({^bb0(%x: tensor<2x3xf32>, %y: tensor<i32>): "stablehlo.return"(%p) : (tensor<i1>) -> ()}, {^bb0(%x: tensor<2x3xf32>, %y: tensor<i32>): "stablehlo.return"(%x, %y) : (tensor<2x3xf32>, tensor<i32>) -> ()}) : (tensor<2x3xf32>, tensor<i32>) -> (tensor<2x3xf32>, tensor<i32>)
"stablehlo.reduce"(%a, %a, %z, %z) ({^bb0(%x: tensor<f32>, %y: tensor<f32>, %x2: tensor<f32>, %y2: tensor<f32>): "stablehlo.return"(%x, %y) : (tensor<f32>, tensor<f32>) -> ()}) {dimensions = array<i64: 0>, foo = 1 : i32} : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<f32>, tensor<f32>) -> (tensor<3xf32>, tensor<3xf32>)
"stablehlo.reduce"(%a, %z) ({^bb0(%x: tensor<f32>, %y: tensor<f32>): %w = "stablehlo.maximum"(%x, %y) : (tensor<f32>, tensor<f32>) -> tensor<f32> "stablehlo.return"(%w) : (tensor<f32>) -> ()}) {dimensions = array<i64: 0>, foo = 1 : i32} : (tensor<2x3xf32>, tensor<f32>) -> tensor<3xf32>
"stablehlo.if"(%p) ({"stablehlo.return"() : () -> ()}, {"stablehlo.return"() : () -> ()}) : (tensor<i1>) -> ()
"stablehlo.case"(%i) ({"stablehlo.return"(%z) : (tensor<f32>) -> ()}, {"stablehlo.return"(%z) : (tensor<f32>) -> ()}) : (tensor<i32>) -> tensor<f32>
"stablehlo.map"(%a) ({^bb0(%x: tensor<f32>): "stablehlo.return"(%x) : (tensor<f32>) -> ()}) {dimensions = array<i64: 0, 1>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
"stablehlo.reduce_window"(%a, %z) ({^bb0(%x: tensor<f32>, %y: tensor<f32>): "stablehlo.return"(%x) : (tensor<f32>) -> ()}) {window_dimensions = array<i64: 2, 1>, padding = dense<0> : tensor<2x2xi64>} : (tensor<2x3xf32>, tensor<f32>) -> tensor<1x3xf32>
"sdy.sharding_constraint"(%a) {sharding = #sdy.sharding<@mesh, [{"x"}, {?}]>} : (tensor<2x3xf32>) -> tensor<2x3xf32>
"func.call"(%a) {callee = @declared} : (tensor<2x3xf32>) -> tensor<f32>
""".strip()

context = mlir.make_ir_context()
with context:
  lines = ["%x4 = stablehlo.constant dense<0.0> : tensor<1x8x8x3xf32>", "%w4 = stablehlo.constant dense<0.0> : tensor<3x3x3x4xf32>"]
  for number, operation in enumerate(OPERATIONS.splitlines()):
    results = operation.rsplit("->", 1)[1].strip()
    count = len(ir.Type.parse(f"() -> {results}").results)
    lines.append(f"%r{number}:{count} = {operation}" if count else operation)
  module = ir.Module.parse(HEADER + "\n".join(lines) + "\nfunc.return %a : tensor<2x3xf32>\n}")
  here = pathlib.Path(__file__).parent
  (here / "every_form.pretty.mlir").write_text(module.operation.get_asm())
  (here / "every_form.generic.mlir").write_text(module.operation.get_asm(print_generic_op_form=True))
