module @jit_data_parallel attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main() {
    %cst = stablehlo.constant dense<[[-0.2265625, 0.1328125, 0.19140625, -0.18359375, -0.14453125, 0.22265625], [8.593750e-02, -0.2421875, -2.343750e-02, 2.500000e-01, -3.906250e-02, -0.23828125], [0.1015625, 0.21484375, -1.562500e-01, -1.718750e-01, 0.19921875, 0.12109375], [-0.23046875, -6.250000e-02, 2.500000e-01, -3.906250e-03, -0.24609375, 0.06640625]]> : tensor<4x6xf32>
    %cst_0 = stablehlo.constant dense<[[-0.2265625, 0.1328125, 0.19140625, -0.18359375], [-0.14453125, 0.22265625, 8.593750e-02, -0.2421875], [-2.343750e-02, 2.500000e-01, -3.906250e-02, -0.23828125], [0.1015625, 0.21484375, -1.562500e-01, -1.718750e-01], [0.19921875, 0.12109375, -0.23046875, -6.250000e-02], [2.500000e-01, -3.906250e-03, -0.24609375, 0.06640625]]> : tensor<6x4xf32>
    %cst_1 = stablehlo.constant dense<[[2.187500e+00, 3.000000e+00, -3.000000e+00, -2.250000e+00], [3.562500e+00, 1.312500e+00, -3.937500e+00, -3.125000e-01], [4.000000e+00, -6.875000e-01, -3.812500e+00, 1.687500e+00], [3.375000e+00, -2.562500e+00, -2.750000e+00, 3.250000e+00], [1.875000e+00, -3.750000e+00, -9.375000e-01, 4.000000e+00], [-1.250000e-01, -3.937500e+00, 1.125000e+00, 3.687500e+00], [-2.062500e+00, -3.125000e+00, 2.875000e+00, 2.375000e+00], [-3.500000e+00, -1.500000e+00, 3.875000e+00, 5.000000e-01]]> : tensor<8x4xf32>
    %0:3 = call @program(%cst, %cst_0, %cst_1) : (tensor<4x6xf32>, tensor<6x4xf32>, tensor<8x4xf32>) -> (tensor<f32>, tensor<4x6xf32>, tensor<6x4xf32>)
    %cst_2 = stablehlo.constant dense<7.60146331> : tensor<f32>
    stablehlo.custom_call @check.expect_almost_eq(%0#0, %cst_2) {has_side_effect = true} : (tensor<f32>, tensor<f32>) -> ()
    %cst_3 = stablehlo.constant dense<[[-0.430078238, -0.317468464, 0.376669765, 0.216794252, 0.179306686, 0.915053188], [0.076418452, 0.218449831, 0.415742576, 0.633356273, 0.35745874, -0.0411236882], [0.308761507, 0.549426794, -0.455828369, -0.67226845, -0.228757352, -0.624812901], [-0.274503261, -0.610103965, -0.113896042, -0.259550333, -0.534058332, 0.0607795119]]> : tensor<4x6xf32>
    stablehlo.custom_call @check.expect_almost_eq(%0#1, %cst_3) {has_side_effect = true} : (tensor<4x6xf32>, tensor<4x6xf32>) -> ()
    %cst_4 = stablehlo.constant dense<[[-0.645278036, 0.364148915, 0.553725779, -0.50870961], [-0.343967706, -0.151005864, 0.381897479, 0.0566240251], [0.440259814, 8.449660e-02, -0.463622898, 0.0367646813], [0.138322949, 0.635350943, -0.300645679, -0.556517839], [-0.293382794, 0.211619884, 0.242429137, -0.274672747], [0.354947716, -0.418169349, -0.245711386, 0.481793433]]> : tensor<6x4xf32>
    stablehlo.custom_call @check.expect_almost_eq(%0#2, %cst_4) {has_side_effect = true} : (tensor<6x4xf32>, tensor<6x4xf32>) -> ()
    return
  }
  sdy.mesh @mesh = <["data"=4, "model"=2]> {stablehlo.mesh = {axes = [{name = "data", size = 4 : i64}, {name = "model", size = 2 : i64}]}}
  func.func private @program(%arg0: tensor<4x6xf32>, %arg1: tensor<6x4xf32>, %arg2: tensor<8x4xf32>) -> (tensor<f32> {jax.result_info = "result[0]"}, tensor<4x6xf32> {jax.result_info = "result[1][0]"}, tensor<6x4xf32> {jax.result_info = "result[1][1]"}) {
    %0 = sdy.sharding_constraint %arg0 <@mesh, [{}, {}]> : tensor<4x6xf32>
    %1 = sdy.sharding_constraint %arg1 <@mesh, [{}, {}]> : tensor<6x4xf32>
    %2 = sdy.sharding_constraint %arg2 <@mesh, [{"data", "model"}, {}]> : tensor<8x4xf32>
    %3 = stablehlo.dot_general %2, %0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    %4 = stablehlo.tanh %3 : tensor<8x6xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %5 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<8x6xf32>
    %6 = stablehlo.subtract %5, %4 : tensor<8x6xf32>
    %7 = stablehlo.dot_general %4, %1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x6xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
    %8 = stablehlo.subtract %7, %2 : tensor<8x4xf32>
    %9 = stablehlo.multiply %8, %8 : tensor<8x4xf32>
    %cst_0 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
    %10 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<8x4xf32>
    %11 = stablehlo.multiply %10, %8 : tensor<8x4xf32>
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %12 = stablehlo.reduce(%9 init: %cst_1) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<f32>
    %cst_2 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %13 = stablehlo.divide %12, %cst_2 : tensor<f32>
    %cst_3 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %cst_4 = stablehlo.constant dense<3.200000e+01> : tensor<f32>
    %14 = stablehlo.divide %cst_3, %cst_4 : tensor<f32>
    %15 = stablehlo.broadcast_in_dim %14, dims = [] : (tensor<f32>) -> tensor<8x4xf32>
    %16 = stablehlo.multiply %15, %11 : tensor<8x4xf32>
    %17 = stablehlo.dot_general %16, %4, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x4xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
    %18 = stablehlo.transpose %17, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
    %19 = stablehlo.dot_general %16, %1, contracting_dims = [1] x [1], precision = [DEFAULT, DEFAULT] : (tensor<8x4xf32>, tensor<6x4xf32>) -> tensor<8x6xf32>
    %20 = stablehlo.multiply %19, %6 : tensor<8x6xf32>
    %21 = stablehlo.multiply %20, %4 : tensor<8x6xf32>
    %22 = stablehlo.add %20, %21 : tensor<8x6xf32>
    %23 = stablehlo.dot_general %22, %2, contracting_dims = [0] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x6xf32>, tensor<8x4xf32>) -> tensor<6x4xf32>
    %24 = stablehlo.transpose %23, dims = [1, 0] : (tensor<6x4xf32>) -> tensor<4x6xf32>
    %cst_5 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %25 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<4x6xf32>
    %26 = stablehlo.multiply %25, %24 : tensor<4x6xf32>
    %27 = stablehlo.subtract %0, %26 : tensor<4x6xf32>
    %cst_6 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
    %28 = stablehlo.broadcast_in_dim %cst_6, dims = [] : (tensor<f32>) -> tensor<6x4xf32>
    %29 = stablehlo.multiply %28, %18 : tensor<6x4xf32>
    %30 = stablehlo.subtract %1, %29 : tensor<6x4xf32>
    return %13, %27, %30 : tensor<f32>, tensor<4x6xf32>, tensor<6x4xf32>
  }
}
