"builtin.module"() ({
  "func.func"() <{function_type = (tensor<2x3xf32>) -> tensor<f32>, sym_name = "declared", sym_visibility = "private"}> ({
  }) : () -> ()
  "sdy.mesh"() <{mesh = #sdy.mesh<["x"=2]>, sym_name = "mesh"}> : () -> ()
  "func.func"() <{arg_attrs = [{jax.name = "a"}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}, {}], function_type = (tensor<2x3xf32>, tensor<3x2xf32>, tensor<3x3xf32>, tensor<f32>, tensor<2xi64>, tensor<2xui64>, tuple<tensor<2x3xf32>, tensor<f32>>, tensor<i32>, tensor<2xi32>, tensor<i1>, tensor<2xf32>, tensor<2xcomplex<f32>>, !stablehlo.token) -> tensor<2x3xf32>, res_attrs = [{jax.result_info = "result"}], sym_name = "forms"}> ({
  ^bb0(%arg0: tensor<2x3xf32>, %arg1: tensor<3x2xf32>, %arg2: tensor<3x3xf32>, %arg3: tensor<f32>, %arg4: tensor<2xi64>, %arg5: tensor<2xui64>, %arg6: tuple<tensor<2x3xf32>, tensor<f32>>, %arg7: tensor<i32>, %arg8: tensor<2xi32>, %arg9: tensor<i1>, %arg10: tensor<2xf32>, %arg11: tensor<2xcomplex<f32>>, %arg12: !stablehlo.token):
    %0 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<1x8x8x3xf32>}> : () -> tensor<1x8x8x3xf32>
    %1 = "stablehlo.constant"() <{value = dense<0.000000e+00> : tensor<3x3x3x4xf32>}> : () -> tensor<3x3x3x4xf32>
    %2 = "stablehlo.create_token"() : () -> !stablehlo.token
    %3 = "stablehlo.after_all"() : () -> !stablehlo.token
    %4 = "stablehlo.after_all"(%arg12, %arg12) : (!stablehlo.token, !stablehlo.token) -> !stablehlo.token
    %5 = "stablehlo.reduce_precision"(%arg0) <{exponent_bits = 5 : i32, mantissa_bits = 2 : i32}> : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %6 = "stablehlo.dot"(%arg0, %arg1) <{precision_config = [#stablehlo<precision HIGH>, #stablehlo<precision DEFAULT>]}> : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
    %7 = "stablehlo.dot_general"(%arg0, %arg1) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision HIGH>, #stablehlo<precision DEFAULT>]}> : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
    %8 = "stablehlo.dot_general"(%arg0, %arg0) <{algorithm = #stablehlo.dot_algorithm<lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false>, dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]>}> : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2xf32>
    %9 = "stablehlo.cholesky"(%arg2) <{lower = true}> : (tensor<3x3xf32>) -> tensor<3x3xf32>
    %10 = "stablehlo.triangular_solve"(%arg2, %arg1) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<3x3xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
    %11 = "stablehlo.rng"(%arg3, %arg3, %arg4) <{rng_distribution = #stablehlo<rng_distribution UNIFORM>}> : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<2x3xf32>
    %12:2 = "stablehlo.rng_bit_generator"(%arg5) <{rng_algorithm = #stablehlo<rng_algorithm DEFAULT>}> : (tensor<2xui64>) -> (tensor<2xui64>, tensor<2x3xui32>)
    %13 = "stablehlo.tuple"(%arg0, %arg3) : (tensor<2x3xf32>, tensor<f32>) -> tuple<tensor<2x3xf32>, tensor<f32>>
    %14 = "stablehlo.get_tuple_element"(%arg6) <{index = 1 : i32}> : (tuple<tensor<2x3xf32>, tensor<f32>>) -> tensor<f32>
    "stablehlo.optimization_barrier"() : () -> ()
    %15:2 = "stablehlo.optimization_barrier"(%arg0, %arg3) {foo = 1 : i32} : (tensor<2x3xf32>, tensor<f32>) -> (tensor<2x3xf32>, tensor<f32>)
    %16 = "stablehlo.get_dimension_size"(%arg0) <{dimension = 1 : i64}> : (tensor<2x3xf32>) -> tensor<i32>
    %17 = "stablehlo.set_dimension_size"(%arg0, %arg7) <{dimension = 1 : i64}> : (tensor<2x3xf32>, tensor<i32>) -> tensor<2x?xf32>
    %18 = "stablehlo.einsum"(%arg0, %arg1) <{einsum_config = "ab,bc->ac"}> : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x2xf32>
    %19 = "stablehlo.torch_index_select"(%arg0, %arg8) <{batch_dims = 0 : i64, dim = 0 : i64}> : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<2x3xf32>
    %20 = "stablehlo.broadcast"(%arg0) <{broadcast_sizes = array<i64: 4>}> : (tensor<2x3xf32>) -> tensor<4x2x3xf32>
    %21 = "stablehlo.broadcast_in_dim"(%arg10) <{broadcast_dimensions = array<i64: 1>}> : (tensor<2xf32>) -> tensor<3x2xf32>
    %22 = "stablehlo.dynamic_broadcast_in_dim"(%arg0, %arg4) <{broadcast_dimensions = array<i64: 0, 1>, known_expanding_dimensions = array<i64: 0>}> : (tensor<2x3xf32>, tensor<2xi64>) -> tensor<?x?xf32>
    %23 = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<2x3xi32>
    %24 = "stablehlo.dynamic_iota"(%arg4) <{iota_dimension = 0 : i64}> : (tensor<2xi64>) -> tensor<?x?xf32>
    %25 = "stablehlo.real_dynamic_slice"(%arg0, %arg4, %arg4, %arg4) : (tensor<2x3xf32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x?xf32>
    %26 = "stablehlo.dynamic_pad"(%arg0, %arg3, %arg4, %arg4, %arg4) : (tensor<2x3xf32>, tensor<f32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x?xf32>
    %27 = "stablehlo.pad"(%arg0, %arg3) <{edge_padding_high = array<i64: -1, 2>, edge_padding_low = array<i64: 0, 1>, interior_padding = array<i64: 0, 1>}> : (tensor<2x3xf32>, tensor<f32>) -> tensor<1x8xf32>
    %28 = "stablehlo.gather"(%arg0, %arg8) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 3>}> : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<2x3xf32>
    %29 = "stablehlo.dynamic_gather"(%arg0, %arg8, %arg4) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false}> : (tensor<2x3xf32>, tensor<2xi32>, tensor<2xi64>) -> tensor<2x?xf32>
    %30 = "stablehlo.scatter"(%arg0, %arg8, %arg0) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = true}> ({
    ^bb0(%arg32: tensor<f32>, %arg33: tensor<f32>):
      "stablehlo.return"(%arg33) : (tensor<f32>) -> ()
    }) : (tensor<2x3xf32>, tensor<2xi32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %31 = "stablehlo.complex"(%arg3, %arg3) : (tensor<f32>, tensor<f32>) -> tensor<complex<f32>>
    %32 = "stablehlo.real"(%arg11) : (tensor<2xcomplex<f32>>) -> tensor<2xf32>
    %33 = "stablehlo.select"(%arg9, %arg0, %arg0) : (tensor<i1>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %34 = "stablehlo.clamp"(%arg3, %arg0, %arg3) : (tensor<f32>, tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
    %35 = "stablehlo.replica_id"() : () -> tensor<ui32>
    %36 = "stablehlo.partition_id"() : () -> tensor<ui32>
    %37 = "stablehlo.fft"(%arg0) <{fft_length = array<i64: 3>, fft_type = #stablehlo<fft_type RFFT>}> : (tensor<2x3xf32>) -> tensor<2x2xcomplex<f32>>
    %38 = "stablehlo.compare"(%arg0, %arg0) <{compare_type = #stablehlo<comparison_type TOTALORDER>, comparison_direction = #stablehlo<comparison_direction EQ>}> {foo = "x"} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
    %39 = "stablehlo.compare"(%arg7, %arg7) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %40 = "stablehlo.constant"() <{value = dense<1.500000e+00> : tensor<f32>}> {foo = "x"} : () -> tensor<f32>
    %41 = "stablehlo.constant"() <{value = dense<[[1, -2], [3, 4]]> : tensor<2x2xi8>}> : () -> tensor<2x2xi8>
    %42 = "stablehlo.constant"() <{value = dense<[(1.000000e+00,-2.000000e+00), (0x7F800000,5.000000e-01)]> : tensor<2xcomplex<f32>>}> : () -> tensor<2xcomplex<f32>>
    %43 = "stablehlo.constant"() <{value = dense<> : tensor<0x3xf16>}> : () -> tensor<0x3xf16>
    %44 = "stablehlo.constant"() <{value = dense<[true, false]> : tensor<2xi1>}> : () -> tensor<2xi1>
    %45 = "stablehlo.exponential"(%arg0) <{result_accuracy = #stablehlo.result_accuracy<atol = 1.000000e-03, ulps = 2, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>}> : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %46 = "stablehlo.add"(%arg0, %arg0) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<?x3xf32>
    %47 = "stablehlo.add"(%arg0, %arg0) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %48 = "stablehlo.convert"(%arg0) : (tensor<2x3xf32>) -> tensor<2x3xbf16>
    %49 = "stablehlo.convert"(%arg0) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %50 = "stablehlo.transpose"(%arg0) <{permutation = array<i64: 1, 0>}> : (tensor<2x3xf32>) -> tensor<3x2xf32>
    %51 = "stablehlo.reverse"(%arg0) <{dimensions = array<i64: 1, 0>}> : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %52 = "stablehlo.reshape"(%arg0) : (tensor<2x3xf32>) -> tensor<6xf32>
    %53 = "stablehlo.concatenate"(%arg0, %arg0) <{dimension = 0 : i64}> : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
    %54 = "stablehlo.dynamic_slice"(%arg10, %arg7) <{slice_sizes = array<i64: 1>}> : (tensor<2xf32>, tensor<i32>) -> tensor<1xf32>
    %55 = "stablehlo.dynamic_slice"(%arg3) <{slice_sizes = array<i64>}> : (tensor<f32>) -> tensor<f32>
    %56 = "stablehlo.dynamic_update_slice"(%arg10, %arg10, %arg7) : (tensor<2xf32>, tensor<2xf32>, tensor<i32>) -> tensor<2xf32>
    %57 = "stablehlo.slice"(%arg3) <{limit_indices = array<i64>, start_indices = array<i64>, strides = array<i64>}> : (tensor<f32>) -> tensor<f32>
    %58 = "stablehlo.slice"(%arg0) <{limit_indices = array<i64: 2, 3>, start_indices = array<i64: 0, 1>, strides = array<i64: 1, 2>}> : (tensor<2x3xf32>) -> tensor<2x1xf32>
    %59 = "stablehlo.convolution"(%0, %1) <{batch_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, lhs_dilation = array<i64: 1, 2>, padding = dense<[[1, 1], [0, 2]]> : tensor<2x2xi64>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>], rhs_dilation = array<i64: 2, 1>, window_reversal = array<i1: false, true>, window_strides = array<i64: 2, 1>}> : (tensor<1x8x8x3xf32>, tensor<3x3x3x4xf32>) -> tensor<1x3x15x4xf32>
    %60 = "chlo.broadcast_add"(%arg3, %arg0) <{broadcast_dimensions = array<i64>}> : (tensor<f32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %61 = "chlo.broadcast_compare"(%arg0, %arg0) <{comparison_direction = #chlo<comparison_direction EQ>}> : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
    %62 = "chlo.constant"() <{value = dense<1.000000e+00> : tensor<f32>}> : () -> tensor<f32>
    %63 = "chlo.constant_like"(%arg0) <{value = 1.000000e+00 : f32}> : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %64 = "chlo.is_inf"(%arg0) : (tensor<2x3xf32>) -> tensor<2x3xi1>
    %65 = "chlo.zeta"(%arg0, %arg0) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
    %66:2 = "chlo.top_k"(%arg0) <{k = 2 : i64}> : (tensor<2x3xf32>) -> (tensor<2x2xf32>, tensor<2x2xi32>)
    %67 = "stablehlo.all_reduce"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<0> : tensor<1x1xi64>, use_global_device_ids}> ({
    ^bb0(%arg30: tensor<f32>, %arg31: tensor<f32>):
      "stablehlo.return"(%arg30) : (tensor<f32>) -> ()
    }) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %68 = "stablehlo.sort"(%arg0) ({
    ^bb0(%arg28: tensor<f32>, %arg29: tensor<f32>):
      %79 = "stablehlo.compare"(%arg28, %arg29) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
      "stablehlo.return"(%79) : (tensor<i1>) -> ()
    }) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %69 = "stablehlo.while"(%arg0) ({
    ^bb0(%arg27: tensor<2x3xf32>):
      "stablehlo.return"(%arg9) : (tensor<i1>) -> ()
    }, {
    ^bb0(%arg26: tensor<2x3xf32>):
      "stablehlo.return"(%arg26) : (tensor<2x3xf32>) -> ()
    }) {foo = 3 : i32} : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %70:2 = "stablehlo.while"(%arg0, %arg7) ({
    ^bb0(%arg24: tensor<2x3xf32>, %arg25: tensor<i32>):
      "stablehlo.return"(%arg9) : (tensor<i1>) -> ()
    }, {
    ^bb0(%arg22: tensor<2x3xf32>, %arg23: tensor<i32>):
      "stablehlo.return"(%arg22, %arg23) : (tensor<2x3xf32>, tensor<i32>) -> ()
    }) : (tensor<2x3xf32>, tensor<i32>) -> (tensor<2x3xf32>, tensor<i32>)
    %71:2 = "stablehlo.reduce"(%arg0, %arg0, %arg3, %arg3) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg18: tensor<f32>, %arg19: tensor<f32>, %arg20: tensor<f32>, %arg21: tensor<f32>):
      "stablehlo.return"(%arg18, %arg19) : (tensor<f32>, tensor<f32>) -> ()
    }) {foo = 1 : i32} : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<f32>, tensor<f32>) -> (tensor<3xf32>, tensor<3xf32>)
    %72 = "stablehlo.reduce"(%arg0, %arg3) <{dimensions = array<i64: 0>}> ({
    ^bb0(%arg16: tensor<f32>, %arg17: tensor<f32>):
      %78 = "stablehlo.maximum"(%arg16, %arg17) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%78) : (tensor<f32>) -> ()
    }) {foo = 1 : i32} : (tensor<2x3xf32>, tensor<f32>) -> tensor<3xf32>
    "stablehlo.if"(%arg9) ({
      "stablehlo.return"() : () -> ()
    }, {
      "stablehlo.return"() : () -> ()
    }) : (tensor<i1>) -> ()
    %73 = "stablehlo.case"(%arg7) ({
      "stablehlo.return"(%arg3) : (tensor<f32>) -> ()
    }, {
      "stablehlo.return"(%arg3) : (tensor<f32>) -> ()
    }) : (tensor<i32>) -> tensor<f32>
    %74 = "stablehlo.map"(%arg0) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%arg15: tensor<f32>):
      "stablehlo.return"(%arg15) : (tensor<f32>) -> ()
    }) : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %75 = "stablehlo.reduce_window"(%arg0, %arg3) <{padding = dense<0> : tensor<2x2xi64>, window_dimensions = array<i64: 2, 1>}> ({
    ^bb0(%arg13: tensor<f32>, %arg14: tensor<f32>):
      "stablehlo.return"(%arg13) : (tensor<f32>) -> ()
    }) : (tensor<2x3xf32>, tensor<f32>) -> tensor<1x3xf32>
    %76 = "sdy.sharding_constraint"(%arg0) <{sharding = #sdy.sharding<@mesh, [{"x"}, {?}]>}> : (tensor<2x3xf32>) -> tensor<2x3xf32>
    %77 = "func.call"(%arg0) <{callee = @declared}> : (tensor<2x3xf32>) -> tensor<f32>
    "func.return"(%arg0) : (tensor<2x3xf32>) -> ()
  }) : () -> ()
}) : () -> ()
