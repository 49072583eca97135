module @jit__lambda attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main() {
    %cst = stablehlo.constant dense<[[2.187500e+00, 3.000000e+00, -3.000000e+00, -2.250000e+00], [3.562500e+00, 1.312500e+00, -3.937500e+00, -3.125000e-01], [4.000000e+00, -6.875000e-01, -3.812500e+00, 1.687500e+00], [3.375000e+00, -2.562500e+00, -2.750000e+00, 3.250000e+00], [1.875000e+00, -3.750000e+00, -9.375000e-01, 4.000000e+00], [-1.250000e-01, -3.937500e+00, 1.125000e+00, 3.687500e+00], [-2.062500e+00, -3.125000e+00, 2.875000e+00, 2.375000e+00], [-3.500000e+00, -1.500000e+00, 3.875000e+00, 5.000000e-01]]> : tensor<8x4xf32>
    %cst_0 = stablehlo.constant dense<[[-0.2265625, 0.1328125, 0.19140625, -0.18359375, -0.14453125, 0.22265625], [8.593750e-02, -0.2421875, -2.343750e-02, 2.500000e-01, -3.906250e-02, -0.23828125], [0.1015625, 0.21484375, -1.562500e-01, -1.718750e-01, 0.19921875, 0.12109375], [-0.23046875, -6.250000e-02, 2.500000e-01, -3.906250e-03, -0.24609375, 0.06640625]]> : tensor<4x6xf32>
    %0 = call @program(%cst, %cst_0) : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<f32>
    %cst_1 = stablehlo.constant dense<-0.299175739> : tensor<f32>
    stablehlo.custom_call @check.expect_almost_eq(%0, %cst_1) {has_side_effect = true} : (tensor<f32>, tensor<f32>) -> ()
    return
  }
  sdy.mesh @mesh = <["data"=4, "model"=2]> {stablehlo.mesh = {axes = [{name = "data", size = 4 : i64}, {name = "model", size = 2 : i64}]}}
  func.func private @program(%arg0: tensor<8x4xf32>, %arg1: tensor<4x6xf32>) -> (tensor<f32> {jax.result_info = "result"}) {
    %0 = sdy.manual_computation(%arg0, %arg1) in_shardings=[<@mesh, [{"data"}, {"model"}]>, <@mesh, [{"model"}, {}]>] out_shardings=[<@mesh, []>] manual_axes={"data", "model"} (%arg2: tensor<2x2xf32>, %arg3: tensor<2x6xf32>) {
      %1 = stablehlo.dot_general %arg2, %arg3, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<2x2xf32>, tensor<2x6xf32>) -> tensor<2x6xf32>
      %2 = stablehlo.sine %1 : tensor<2x6xf32>
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %3 = stablehlo.reduce(%2 init: %cst) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x6xf32>, tensor<f32>) -> tensor<f32>
      %4 = "stablehlo.all_reduce"(%3) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>, use_global_device_ids}> ({
      ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):
        %6 = stablehlo.add %arg4, %arg5 : tensor<f32>
        stablehlo.return %6 : tensor<f32>
      }) : (tensor<f32>) -> tensor<f32>
      %cst_0 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
      %5 = stablehlo.divide %4, %cst_0 : tensor<f32>
      sdy.return %5 : tensor<f32>
    } : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}
