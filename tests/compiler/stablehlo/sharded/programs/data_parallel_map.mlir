module @jit_data_parallel_map attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main() {
    %cst = stablehlo.constant dense<[[-0.2265625, 0.1328125, 0.19140625, -0.18359375, -0.14453125, 0.22265625], [8.593750e-02, -0.2421875, -2.343750e-02, 2.500000e-01, -3.906250e-02, -0.23828125], [0.1015625, 0.21484375, -1.562500e-01, -1.718750e-01, 0.19921875, 0.12109375], [-0.23046875, -6.250000e-02, 2.500000e-01, -3.906250e-03, -0.24609375, 0.06640625]]> : tensor<4x6xf32>
    %cst_0 = stablehlo.constant dense<[[-0.2265625, 0.1328125, 0.19140625, -0.18359375], [-0.14453125, 0.22265625, 8.593750e-02, -0.2421875], [-2.343750e-02, 2.500000e-01, -3.906250e-02, -0.23828125], [0.1015625, 0.21484375, -1.562500e-01, -1.718750e-01], [0.19921875, 0.12109375, -0.23046875, -6.250000e-02], [2.500000e-01, -3.906250e-03, -0.24609375, 0.06640625]]> : tensor<6x4xf32>
    %cst_1 = stablehlo.constant dense<[[2.187500e+00, 3.000000e+00, -3.000000e+00, -2.250000e+00], [3.562500e+00, 1.312500e+00, -3.937500e+00, -3.125000e-01], [4.000000e+00, -6.875000e-01, -3.812500e+00, 1.687500e+00], [3.375000e+00, -2.562500e+00, -2.750000e+00, 3.250000e+00], [1.875000e+00, -3.750000e+00, -9.375000e-01, 4.000000e+00], [-1.250000e-01, -3.937500e+00, 1.125000e+00, 3.687500e+00], [-2.062500e+00, -3.125000e+00, 2.875000e+00, 2.375000e+00], [-3.500000e+00, -1.500000e+00, 3.875000e+00, 5.000000e-01]]> : tensor<8x4xf32>
    %0:3 = call @program(%cst, %cst_0, %cst_1) : (tensor<4x6xf32>, tensor<6x4xf32>, tensor<8x4xf32>) -> (tensor<f32>, tensor<4x6xf32>, tensor<6x4xf32>)
    %cst_2 = stablehlo.constant dense<7.60146331> : tensor<f32>
    stablehlo.custom_call @check.expect_almost_eq(%0#0, %cst_2) {has_side_effect = true} : (tensor<f32>, tensor<f32>) -> ()
    %cst_3 = stablehlo.constant dense<[[-0.430078208, -0.317468464, 0.376669765, 0.216794252, 0.179306686, 0.915053188], [0.0764184594, 0.218449801, 0.415742576, 0.633356214, 0.35745877, -0.0411236882], [0.308761507, 0.549426794, -0.455828369, -0.67226839, -0.228757322, -0.624812901], [-0.274503261, -6.101040e-01, -0.113896042, -0.259550333, -0.534058332, 0.0607795119]]> : tensor<4x6xf32>
    stablehlo.custom_call @check.expect_almost_eq(%0#1, %cst_3) {has_side_effect = true} : (tensor<4x6xf32>, tensor<4x6xf32>) -> ()
    %cst_4 = stablehlo.constant dense<[[-6.452780e-01, 0.364148915, 0.553725779, -0.50870961], [-0.343967706, -0.151005834, 0.381897449, 0.0566240251], [0.440259755, 0.0844966173, -0.463622898, 0.0367647111], [0.138322949, 0.635350943, -0.300645679, -0.556517839], [-0.293382764, 0.211619869, 0.242429107, -0.274672747], [0.354947716, -0.418169349, -0.245711386, 0.481793433]]> : tensor<6x4xf32>
    stablehlo.custom_call @check.expect_almost_eq(%0#2, %cst_4) {has_side_effect = true} : (tensor<6x4xf32>, tensor<6x4xf32>) -> ()
    return
  }
  sdy.mesh @mesh = <["data"=4, "model"=2]> {stablehlo.mesh = {axes = [{name = "data", size = 4 : i64}, {name = "model", size = 2 : i64}]}}
  func.func private @program(%arg0: tensor<4x6xf32>, %arg1: tensor<6x4xf32>, %arg2: tensor<8x4xf32>) -> (tensor<f32> {jax.result_info = "result[0]"}, tensor<4x6xf32> {jax.result_info = "result[1][0]"}, tensor<6x4xf32> {jax.result_info = "result[1][1]"}) {
    %0:3 = sdy.manual_computation(%arg0, %arg1, %arg2) in_shardings=[<@mesh, [{}, {}]>, <@mesh, [{}, {}]>, <@mesh, [{"data"}, {}]>] out_shardings=[<@mesh, []>, <@mesh, [{}, {}]>, <@mesh, [{}, {}]>] manual_axes={"data", "model"} (%arg3: tensor<4x6xf32>, %arg4: tensor<6x4xf32>, %arg5: tensor<2x4xf32>) {
      %1 = stablehlo.dot_general %arg5, %arg3, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x4xf32>, tensor<4x6xf32>) -> tensor<2x6xf32>
      %2 = stablehlo.tanh %1 : tensor<2x6xf32>
      %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      %3 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<2x6xf32>
      %4 = stablehlo.subtract %3, %2 : tensor<2x6xf32>
      %5 = stablehlo.dot_general %2, %arg4, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x6xf32>, tensor<6x4xf32>) -> tensor<2x4xf32>
      %6 = stablehlo.subtract %5, %arg5 : tensor<2x4xf32>
      %7 = stablehlo.multiply %6, %6 : tensor<2x4xf32>
      %cst_0 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
      %8 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<2x4xf32>
      %9 = stablehlo.multiply %8, %6 : tensor<2x4xf32>
      %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %10 = stablehlo.reduce(%7 init: %cst_1) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x4xf32>, tensor<f32>) -> tensor<f32>
      %cst_2 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
      %11 = stablehlo.divide %10, %cst_2 : tensor<f32>
      %cst_3 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      %cst_4 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
      %12 = stablehlo.divide %cst_3, %cst_4 : tensor<f32>
      %13 = stablehlo.broadcast_in_dim %12, dims = [] : (tensor<f32>) -> tensor<2x4xf32>
      %14 = stablehlo.multiply %13, %9 : tensor<2x4xf32>
      %15 = stablehlo.dot_general %14, %2, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x4xf32>, tensor<2x6xf32>) -> tensor<4x6xf32>
      %16 = stablehlo.transpose %15, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
      %17 = stablehlo.dot_general %14, %arg4, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<2x4xf32>, tensor<6x4xf32>) -> tensor<2x6xf32>
      %18 = stablehlo.multiply %17, %4 : tensor<2x6xf32>
      %19 = stablehlo.multiply %18, %2 : tensor<2x6xf32>
      %20 = stablehlo.add %18, %19 : tensor<2x6xf32>
      %21 = stablehlo.dot_general %20, %arg5, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x6xf32>, tensor<2x4xf32>) -> tensor<6x4xf32>
      %22 = stablehlo.transpose %21, dims = [1, 0] : (tensor<6x4xf32>) -> tensor<4x6xf32>
      %23 = "stablehlo.all_reduce"(%22) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 2, 4, 6], [1, 3, 5, 7]]> : tensor<2x4xi64>, use_global_device_ids}> ({
      ^bb0(%arg6: tensor<f32>, %arg7: tensor<f32>):
        %37 = stablehlo.add %arg6, %arg7 : tensor<f32>
        stablehlo.return %37 : tensor<f32>
      }) : (tensor<4x6xf32>) -> tensor<4x6xf32>
      %24 = "stablehlo.all_reduce"(%16) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 2, 4, 6], [1, 3, 5, 7]]> : tensor<2x4xi64>, use_global_device_ids}> ({
      ^bb0(%arg6: tensor<f32>, %arg7: tensor<f32>):
        %37 = stablehlo.add %arg6, %arg7 : tensor<f32>
        stablehlo.return %37 : tensor<f32>
      }) : (tensor<6x4xf32>) -> tensor<6x4xf32>
      %cst_5 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
      %25 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<4x6xf32>
      %26 = stablehlo.divide %23, %25 : tensor<4x6xf32>
      %cst_6 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
      %27 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<6x4xf32>
      %28 = stablehlo.divide %24, %27 : tensor<6x4xf32>
      %29 = "stablehlo.all_reduce"(%11) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 2, 4, 6], [1, 3, 5, 7]]> : tensor<2x4xi64>, use_global_device_ids}> ({
      ^bb0(%arg6: tensor<f32>, %arg7: tensor<f32>):
        %37 = stablehlo.add %arg6, %arg7 : tensor<f32>
        stablehlo.return %37 : tensor<f32>
      }) : (tensor<f32>) -> tensor<f32>
      %cst_7 = stablehlo.constant dense<4.000000e+00> : tensor<f32>
      %30 = stablehlo.divide %29, %cst_7 : tensor<f32>
      %cst_8 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
      %31 = stablehlo.broadcast_in_dim %cst_8, dims = [] : (tensor<f32>) -> tensor<4x6xf32>
      %32 = stablehlo.multiply %31, %26 : tensor<4x6xf32>
      %33 = stablehlo.subtract %arg3, %32 : tensor<4x6xf32>
      %cst_9 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
      %34 = stablehlo.broadcast_in_dim %cst_9, dims = [] : (tensor<f32>) -> tensor<6x4xf32>
      %35 = stablehlo.multiply %34, %28 : tensor<6x4xf32>
      %36 = stablehlo.subtract %arg4, %35 : tensor<6x4xf32>
      sdy.return %30, %33, %36 : tensor<f32>, tensor<4x6xf32>, tensor<6x4xf32>
    } : (tensor<4x6xf32>, tensor<6x4xf32>, tensor<8x4xf32>) -> (tensor<f32>, tensor<4x6xf32>, tensor<6x4xf32>)
    return %0#0, %0#1, %0#2 : tensor<f32>, tensor<4x6xf32>, tensor<6x4xf32>
  }
}
