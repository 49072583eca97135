module {
  func.func private @declared(tensor<2x3xf32>) -> tensor<f32>
  sdy.mesh @mesh = <["x"=2]>
  func.func @forms(%arg0: tensor<2x3xf32> {jax.name = "a"}, %arg1: tensor<3x2xf32>, %arg2: tensor<3x3xf32>, %arg3: tensor<f32>, %arg4: tensor<2xi64>, %arg5: tensor<2xui64>, %arg6: tuple<tensor<2x3xf32>, tensor<f32>>, %arg7: tensor<i32>, %arg8: tensor<2xi32>, %arg9: tensor<i1>, %arg10: tensor<2xf32>, %arg11: tensor<2xcomplex<f32>>, %arg12: !stablehlo.token) -> (tensor<2x3xf32> {jax.result_info = "result"}) {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<1x8x8x3xf32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<3x3x3x4xf32>
    %0 = stablehlo.create_token : !stablehlo.token
    %1 = stablehlo.after_all  : !stablehlo.token
    %2 = stablehlo.after_all %arg12, %arg12 : !stablehlo.token
    %3 = stablehlo.reduce_precision %arg0, format = e5m2 : tensor<2x3xf32>
    %4 = stablehlo.dot %arg0, %arg1, precision = [HIGH, DEFAULT] : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
    %5 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [HIGH, DEFAULT] : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
    %6 = stablehlo.dot_general %arg0, %arg0, batching_dims = [0] x [0], contracting_dims = [1] x [1], algorithm = <lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2xf32>
    %7 = stablehlo.cholesky %arg2, lower = true : tensor<3x3xf32>
    %8 = "stablehlo.triangular_solve"(%arg2, %arg1) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<3x3xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
    %9 = stablehlo.rng %arg3, %arg3, %arg4, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<2x3xf32>
    %output_state, %output = stablehlo.rng_bit_generator %arg5, algorithm = DEFAULT : (tensor<2xui64>) -> (tensor<2xui64>, tensor<2x3xui32>)
    %10 = stablehlo.tuple %arg0, %arg3 : tuple<tensor<2x3xf32>, tensor<f32>>
    %11 = stablehlo.get_tuple_element %arg6[1] : (tuple<tensor<2x3xf32>, tensor<f32>>) -> tensor<f32>
    stablehlo.optimization_barrier()
    %12:2 = stablehlo.optimization_barrier {foo = 1 : i32} %arg0, %arg3 : tensor<2x3xf32>, tensor<f32>
    %13 = stablehlo.get_dimension_size %arg0, dim = 1 : (tensor<2x3xf32>) -> tensor<i32>
    %14 = stablehlo.set_dimension_size %arg0, %arg7, dim = 1 : (tensor<2x3xf32>, tensor<i32>) -> tensor<2x?xf32>
    %15 = stablehlo.einsum %arg0, %arg1, config = "ab,bc->ac" : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
    %16 = "stablehlo.torch_index_select"(%arg0, %arg8) <{batch_dims = 0 : i64, dim = 0 : i64}> : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<2x3xf32>
    %17 = stablehlo.broadcast %arg0, sizes = [4] : (tensor<2x3xf32>) -> tensor<4x2x3xf32>
    %18 = stablehlo.broadcast_in_dim %arg10, dims = [1] : (tensor<2xf32>) -> tensor<3x2xf32>
    %19 = stablehlo.dynamic_broadcast_in_dim %arg0, %arg4, dims = [0, 1] {known_expanding_dimensions = array<i64: 0>} : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<?x?xf32>
    %20 = stablehlo.iota dim = 1 : tensor<2x3xi32>
    %21 = stablehlo.dynamic_iota %arg4, dim = 0 : (tensor<2xi64>) -> tensor<?x?xf32>
    %22 = stablehlo.real_dynamic_slice %arg0, %arg4, %arg4, %arg4 : (tensor<2x3xf32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x?xf32>
    %23 = stablehlo.dynamic_pad %arg0, %arg3, %arg4, %arg4, %arg4 : (tensor<2x3xf32>, tensor<f32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x?xf32>
    %24 = stablehlo.pad %arg0, %arg3, low = [0, 1], high = [-1, 2], interior = [0, 1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<1x8xf32>
    %25 = "stablehlo.gather"(%arg0, %arg8) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 3>}> : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<2x3xf32>
    %26 = "stablehlo.dynamic_gather"(%arg0, %arg8, %arg4) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false}> : (tensor<2x3xf32>, tensor<2xi32>, tensor<2xi64>) -> tensor<2x?xf32>
    %27 = "stablehlo.scatter"(%arg0, %arg8, %arg0) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = true}> ({
    ^bb0(%arg13: tensor<f32>, %arg14: tensor<f32>):
      stablehlo.return %arg14 : tensor<f32>
    }) : (tensor<2x3xf32>, tensor<2xi32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %28 = stablehlo.complex %arg3, %arg3 : tensor<complex<f32>>
    %29 = stablehlo.real %arg11 : (tensor<2xcomplex<f32>>) -> tensor<2xf32>
    %30 = stablehlo.select %arg9, %arg0, %arg0 : tensor<i1>, tensor<2x3xf32>
    %31 = stablehlo.clamp %arg3, %arg0, %arg3 : (tensor<f32>, tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
    %32 = stablehlo.replica_id : tensor<ui32>
    %33 = stablehlo.partition_id : tensor<ui32>
    %34 = stablehlo.fft %arg0, type = RFFT, length = [3] : (tensor<2x3xf32>) -> tensor<2x2xcomplex<f32>>
    %35 = stablehlo.compare EQ, %arg0, %arg0, TOTALORDER {foo = "x"} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
    %36 = stablehlo.compare LT, %arg7, %arg7 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %cst_1 = stablehlo.constant {foo = "x"} dense<1.500000e+00> : tensor<f32>
    %c = stablehlo.constant dense<[[1, -2], [3, 4]]> : tensor<2x2xi8>
    %cst_2 = stablehlo.constant dense<[(1.000000e+00,-2.000000e+00), (0x7F800000,5.000000e-01)]> : tensor<2xcomplex<f32>>
    %cst_3 = stablehlo.constant dense<> : tensor<0x3xf16>
    %c_4 = stablehlo.constant dense<[true, false]> : tensor<2xi1>
    %37 = stablehlo.exponential %arg0 {result_accuracy = #stablehlo.result_accuracy<atol = 1.000000e-03, ulps = 2, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : tensor<2x3xf32>
    %38 = stablehlo.add %arg0, %arg0 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<?x3xf32>
    %39 = stablehlo.add %arg0, %arg0 : tensor<2x3xf32>
    %40 = stablehlo.convert %arg0 : (tensor<2x3xf32>) -> tensor<2x3xbf16>
    %41 = stablehlo.convert %arg0 : tensor<2x3xf32>
    %42 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
    %43 = stablehlo.reverse %arg0, dims = [1, 0] : tensor<2x3xf32>
    %44 = stablehlo.reshape %arg0 : (tensor<2x3xf32>) -> tensor<6xf32>
    %45 = stablehlo.concatenate %arg0, %arg0, dim = 0 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
    %46 = stablehlo.dynamic_slice %arg10, %arg7, sizes = [1] : (tensor<2xf32>, tensor<i32>) -> tensor<1xf32>
    %47 = stablehlo.dynamic_slice %arg3, , sizes = [] : (tensor<f32>) -> tensor<f32>
    %48 = stablehlo.dynamic_update_slice %arg10, %arg10, %arg7 : (tensor<2xf32>, tensor<2xf32>, tensor<i32>) -> tensor<2xf32>
    %49 = stablehlo.slice %arg3 [] : (tensor<f32>) -> tensor<f32>
    %50 = stablehlo.slice %arg0 [0:2, 1:3:2] : (tensor<2x3xf32>) -> tensor<2x1xf32>
    %51 = stablehlo.convolution(%cst, %cst_0) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 1], pad = [[1, 1], [0, 2]], lhs_dilate = [1, 2], rhs_dilate = [2, 1], reverse = [false, true]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<1x3x15x4xf32>
    %52 = chlo.broadcast_add %arg3, %arg0 {broadcast_dimensions = array<i64>} : (tensor<f32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %53 = chlo.broadcast_compare %arg0, %arg0 {comparison_direction = #chlo<comparison_direction EQ>} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
    %54 = chlo.constant dense<1.000000e+00> : tensor<f32>
    %55 = "chlo.constant_like"(%arg0) <{value = 1.000000e+00 : f32}> : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %56 = chlo.is_inf %arg0 : tensor<2x3xf32> -> tensor<2x3xi1>
    %57 = chlo.zeta %arg0, %arg0 : tensor<2x3xf32>, tensor<2x3xf32> -> tensor<2x3xf32>
    %values, %indices = chlo.top_k(%arg0, k = 2) : tensor<2x3xf32> -> (tensor<2x2xf32>, tensor<2x2xi32>)
    %58 = "stablehlo.all_reduce"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<0> : tensor<1x1xi64>, use_global_device_ids}> ({
    ^bb0(%arg13: tensor<f32>, %arg14: tensor<f32>):
      stablehlo.return %arg13 : tensor<f32>
    }) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %59 = "stablehlo.sort"(%arg0) ({
    ^bb0(%arg13: tensor<f32>, %arg14: tensor<f32>):
      %69 = stablehlo.compare LT, %arg13, %arg14 : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %69 : tensor<i1>
    }) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %60 = stablehlo.while(%iterArg = %arg0) : tensor<2x3xf32> attributes {foo = 3 : i32}
    cond {
      stablehlo.return %arg9 : tensor<i1>
    } do {
      stablehlo.return %iterArg : tensor<2x3xf32>
    }
    %61:2 = stablehlo.while(%iterArg = %arg0, %iterArg_5 = %arg7) : tensor<2x3xf32>, tensor<i32>
    cond {
      stablehlo.return %arg9 : tensor<i1>
    } do {
      stablehlo.return %iterArg, %iterArg_5 : tensor<2x3xf32>, tensor<i32>
    }
    %62:2 = stablehlo.reduce(%arg0 init: %arg3), (%arg0 init: %arg3) across dimensions = [0] {foo = 1 : i32} : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<f32>, tensor<f32>) -> (tensor<3xf32>, tensor<3xf32>)
     reducer(%arg13: tensor<f32>, %arg15: tensor<f32>) (%arg14: tensor<f32>, %arg16: tensor<f32>)  {
      stablehlo.return %arg13, %arg14 : tensor<f32>, tensor<f32>
    }
    %63 = stablehlo.reduce(%arg0 init: %arg3) applies stablehlo.maximum across dimensions = [0] {foo = 1 : i32} : (tensor<2x3xf32>, tensor<f32>) -> tensor<3xf32>
    "stablehlo.if"(%arg9) ({
      stablehlo.return 
    }, {
      stablehlo.return 
    }) : (tensor<i1>) -> ()
    %64 = "stablehlo.case"(%arg7) ({
      stablehlo.return %arg3 : tensor<f32>
    }, {
      stablehlo.return %arg3 : tensor<f32>
    }) : (tensor<i32>) -> tensor<f32>
    %65 = "stablehlo.map"(%arg0) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg13: tensor<f32>):
      stablehlo.return %arg13 : tensor<f32>
    }) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %66 = "stablehlo.reduce_window"(%arg0, %arg3) <{padding = dense<0> : tensor<2x2xi64>, window_dimensions = array<i64: 2, 1>}> ({
    ^bb0(%arg13: tensor<f32>, %arg14: tensor<f32>):
      stablehlo.return %arg13 : tensor<f32>
    }) : (tensor<2x3xf32>, tensor<f32>) -> tensor<1x3xf32>
    %67 = sdy.sharding_constraint %arg0 <@mesh, [{"x"}, {?}]> : tensor<2x3xf32>
    %68 = call @declared(%arg0) : (tensor<2x3xf32>) -> tensor<f32>
    return %arg0 : tensor<2x3xf32>
  }
}
