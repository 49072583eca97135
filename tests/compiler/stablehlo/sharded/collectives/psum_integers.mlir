module @jit__lambda attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main() {
    %c = stablehlo.constant dense<[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15], [16, 17, 18, 19], [20, 21, 22, 23], [24, 25, 26, 27], [28, 29, 30, 31]]> : tensor<8x4xi32>
    %0 = call @program(%c) : (tensor<8x4xi32>) -> tensor<8x2xi32>
    %c_0 = stablehlo.constant dense<[[2, 4], [10, 12], [18, 20], [26, 28], [34, 36], [42, 44], [50, 52], [58, 60]]> : tensor<8x2xi32>
    stablehlo.custom_call @check.expect_eq(%0, %c_0) {has_side_effect = true} : (tensor<8x2xi32>, tensor<8x2xi32>) -> ()
    return
  }
  sdy.mesh @mesh = <["data"=4, "model"=2]> {stablehlo.mesh = {axes = [{name = "data", size = 4 : i64}, {name = "model", size = 2 : i64}]}}
  func.func private @program(%arg0: tensor<8x4xi32>) -> (tensor<8x2xi32> {jax.result_info = "result"}) {
    %0 = sdy.manual_computation(%arg0) in_shardings=[<@mesh, [{"data"}, {"model"}]>] out_shardings=[<@mesh, [{"data"}, {}]>] manual_axes={"data", "model"} (%arg1: tensor<2x2xi32>) {
      %1 = "stablehlo.all_reduce"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3], [4, 5], [6, 7]]> : tensor<4x2xi64>, use_global_device_ids}> ({
      ^bb0(%arg2: tensor<i32>, %arg3: tensor<i32>):
        %2 = stablehlo.add %arg2, %arg3 : tensor<i32>
        stablehlo.return %2 : tensor<i32>
      }) : (tensor<2x2xi32>) -> tensor<2x2xi32>
      sdy.return %1 : tensor<2x2xi32>
    } : (tensor<8x4xi32>) -> tensor<8x2xi32>
    return %0 : tensor<8x2xi32>
  }
}
