module @jit_two_maps attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main() {
    %cst = stablehlo.constant dense<[[2.187500e+00, 3.000000e+00, -3.000000e+00, -2.250000e+00], [3.562500e+00, 1.312500e+00, -3.937500e+00, -3.125000e-01], [4.000000e+00, -6.875000e-01, -3.812500e+00, 1.687500e+00], [3.375000e+00, -2.562500e+00, -2.750000e+00, 3.250000e+00], [1.875000e+00, -3.750000e+00, -9.375000e-01, 4.000000e+00], [-1.250000e-01, -3.937500e+00, 1.125000e+00, 3.687500e+00], [-2.062500e+00, -3.125000e+00, 2.875000e+00, 2.375000e+00], [-3.500000e+00, -1.500000e+00, 3.875000e+00, 5.000000e-01]]> : tensor<8x4xf32>
    %0 = call @program(%cst) : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %cst_0 = stablehlo.constant dense<[[0.219154298, 1.84385395, 1.84385395, 0.0888697504], [0.887406229, 1.51208544, 8.8340044E-4, 1.3153224], [0.042340517, 7.569760e-02, 0.103045166, 1.89300632], [1.59492064, 0.321606159, 1.00442564, 1.90744686], [1.34663534, 0.240312099, 0.179440618, 0.042340517], [1.87758255, 8.8340044E-4, 0.78920418, 0.424812734], [0.61425209, 1.9977982, 1.48330474, 0.00282782316], [1.13673723, 1.96017027, 0.0215465426, 0.583853126]]> : tensor<8x4xf32>
    stablehlo.custom_call @check.expect_almost_eq(%0, %cst_0) {has_side_effect = true} : (tensor<8x4xf32>, tensor<8x4xf32>) -> ()
    return
  }
  sdy.mesh @mesh = <["data"=4, "model"=2]> {stablehlo.mesh = {axes = [{name = "data", size = 4 : i64}, {name = "model", size = 2 : i64}]}}
  func.func private @program(%arg0: tensor<8x4xf32>) -> (tensor<8x4xf32> {jax.result_info = "result"}) {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{}, {"model"}]>] out_shardings=[<@mesh, [{"data"}, {"model"}]>] manual_axes={"data", "model"} (%arg1: tensor<8x2xf32>) {
      %5 = "stablehlo.reduce_scatter"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 2, 4, 6], [1, 3, 5, 7]]> : tensor<2x4xi64>, scatter_dimension = 0 : i64, use_global_device_ids}> ({
      ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
        %6 = stablehlo.add %arg2, %arg3 : tensor<f32>
        stablehlo.return %6 : tensor<f32>
      }) : (tensor<8x2xf32>) -> tensor<2x2xf32>
      sdy.return %5 : tensor<2x2xf32>
    } : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %1 = stablehlo.cosine %0 : tensor<8x4xf32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<8x4xf32>
    %3 = stablehlo.add %1, %2 : tensor<8x4xf32>
    %4 = sdy.manual_computation(%3) in_shardings=[<@mesh, [{"data"}, {"model"}]>] out_shardings=[<@mesh, [{"data"}, {}]>] manual_axes={"data", "model"} (%arg1: tensor<2x2xf32>) {
      %5 = "stablehlo.all_gather"(%arg1) <{all_gather_dim = 1 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3], [4, 5], [6, 7]]> : tensor<4x2xi64>, use_global_device_ids}> : (tensor<2x2xf32>) -> tensor<2x4xf32>
      sdy.return %5 : tensor<2x4xf32>
    } : (tensor<8x4xf32>) -> tensor<8x4xf32>
    return %4 : tensor<8x4xf32>
  }
}
