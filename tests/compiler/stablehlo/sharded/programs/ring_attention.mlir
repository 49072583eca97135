module @jit_ring_attention attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main() {
    %cst = stablehlo.constant dense<[[0.13671875, 1.875000e-01, -1.875000e-01, -1.406250e-01], [0.22265625, 0.08203125, -0.24609375, -0.01953125], [2.500000e-01, -0.04296875, -0.23828125, 0.10546875], [0.2109375, -0.16015625, -1.718750e-01, 2.031250e-01], [0.1171875, -2.343750e-01, -0.05859375, 2.500000e-01], [-7.812500e-03, -0.24609375, 7.031250e-02, 0.23046875], [-0.12890625, -0.1953125, 0.1796875, 0.1484375], [-2.187500e-01, -9.375000e-02, 0.2421875, 3.125000e-02]]> : tensor<8x4xf32>
    %cst_0 = stablehlo.constant dense<[[0.13671875, 1.875000e-01, -1.875000e-01, -1.406250e-01], [0.22265625, 0.08203125, -0.24609375, -0.01953125], [2.500000e-01, -0.04296875, -0.23828125, 0.10546875], [0.2109375, -0.16015625, -1.718750e-01, 2.031250e-01], [0.1171875, -2.343750e-01, -0.05859375, 2.500000e-01], [-7.812500e-03, -0.24609375, 7.031250e-02, 0.23046875], [-0.12890625, -0.1953125, 0.1796875, 0.1484375], [-2.187500e-01, -9.375000e-02, 0.2421875, 3.125000e-02]]> : tensor<8x4xf32>
    %cst_1 = stablehlo.constant dense<[[0.13671875, 1.875000e-01, -1.875000e-01, -1.406250e-01], [0.22265625, 0.08203125, -0.24609375, -0.01953125], [2.500000e-01, -0.04296875, -0.23828125, 0.10546875], [0.2109375, -0.16015625, -1.718750e-01, 2.031250e-01], [0.1171875, -2.343750e-01, -0.05859375, 2.500000e-01], [-7.812500e-03, -0.24609375, 7.031250e-02, 0.23046875], [-0.12890625, -0.1953125, 0.1796875, 0.1484375], [-2.187500e-01, -9.375000e-02, 0.2421875, 3.125000e-02]]> : tensor<8x4xf32>
    %0 = call @program(%cst, %cst_0, %cst_1) : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %cst_2 = stablehlo.constant dense<[[0.0835218653, -0.0773088932, -0.0648093596, 0.093933843], [0.0861445888, -0.0802385136, -0.0666751042, 0.0973598957], [0.0853068307, -0.0850863978, -0.0645758286, 0.101690352], [0.0813504084, -0.0905698687, -0.0591872968, 0.105810806], [0.0751191899, -0.0952795073, -0.0517203733, 0.108617365], [0.0681187808, -0.0980058833, -0.0439970829, 0.10936439], [0.0622124448, -0.0981278792, -0.0380460806, 0.107950747], [0.0588935167, -0.0957353934, -0.0353412852, 0.104847237]]> : tensor<8x4xf32>
    stablehlo.custom_call @check.expect_almost_eq(%0, %cst_2) {has_side_effect = true} : (tensor<8x4xf32>, tensor<8x4xf32>) -> ()
    return
  }
  sdy.mesh @mesh = <["i"=8]> {stablehlo.mesh = {axes = [{name = "i", size = 8 : i64}]}}
  func.func private @program(%arg0: tensor<8x4xf32>, %arg1: tensor<8x4xf32>, %arg2: tensor<8x4xf32>) -> (tensor<8x4xf32> {jax.result_info = "result"}) {
    %0 = sdy.manual_computation(%arg0, %arg1, %arg2) in_shardings=[<@mesh, [{"i"}, {}]>, <@mesh, [{"i"}, {}]>, <@mesh, [{"i"}, {}]>] out_shardings=[<@mesh, [{"i"}, {}]>] manual_axes={"i"} (%arg3: tensor<1x4xf32>, %arg4: tensor<1x4xf32>, %arg5: tensor<1x4xf32>) {
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x4xf32>
      %2 = stablehlo.slice %arg3 [0:1, 0:1] : (tensor<1x4xf32>) -> tensor<1x1xf32>
      %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %3 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<1x1xf32>
      %c = stablehlo.constant dense<0> : tensor<i32>
      %4:6 = stablehlo.while(%iterArg = %arg3, %iterArg_1 = %c, %iterArg_2 = %arg4, %iterArg_3 = %arg5, %iterArg_4 = %1, %iterArg_5 = %3) : tensor<1x4xf32>, tensor<i32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x1xf32>
      cond {
        %c_6 = stablehlo.constant dense<8> : tensor<i32>
        %7 = stablehlo.compare LT, %iterArg_1, %c_6, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %7 : tensor<i1>
      } do {
        %7:4 = func.call @closed_call(%iterArg, %iterArg_2, %iterArg_3, %iterArg_4, %iterArg_5) : (tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x1xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x1xf32>)
        %c_6 = stablehlo.constant dense<1> : tensor<i32>
        %8 = stablehlo.add %iterArg_1, %c_6 : tensor<i32>
        stablehlo.return %iterArg, %8, %7#0, %7#1, %7#2, %7#3 : tensor<1x4xf32>, tensor<i32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x1xf32>
      }
      %5 = stablehlo.broadcast_in_dim %4#5, dims = [0, 1] : (tensor<1x1xf32>) -> tensor<1x4xf32>
      %6 = stablehlo.divide %4#4, %5 : tensor<1x4xf32>
      sdy.return %6 : tensor<1x4xf32>
    } : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
  func.func private @closed_call(%arg0: tensor<1x4xf32>, %arg1: tensor<1x4xf32>, %arg2: tensor<1x4xf32>, %arg3: tensor<1x4xf32>, %arg4: tensor<1x1xf32>) -> (tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x1xf32>) {
    %0 = stablehlo.transpose %arg1, dims = [1, 0] : (tensor<1x4xf32>) -> tensor<4x1xf32>
    %1 = stablehlo.dot_general %arg0, %0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x4xf32>, tensor<4x1xf32>) -> tensor<1x1xf32>
    %2 = stablehlo.exponential %1 : tensor<1x1xf32>
    %3 = stablehlo.dot_general %2, %arg2, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<1x1xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
    %4 = stablehlo.add %arg3, %3 : tensor<1x4xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %5 = stablehlo.reduce(%2 init: %cst) applies stablehlo.add across dimensions = [1] : (tensor<1x1xf32>, tensor<f32>) -> tensor<1xf32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [0] : (tensor<1xf32>) -> tensor<1x1xf32>
    %7 = stablehlo.add %arg4, %6 : tensor<1x1xf32>
    %8 = "stablehlo.collective_permute"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 6], [6, 7], [7, 0]]> : tensor<8x2xi64>}> : (tensor<1x4xf32>) -> tensor<1x4xf32>
    %9 = "stablehlo.collective_permute"(%arg2) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 1], [1, 2], [2, 3], [3, 4], [4, 5], [5, 6], [6, 7], [7, 0]]> : tensor<8x2xi64>}> : (tensor<1x4xf32>) -> tensor<1x4xf32>
    return %8, %9, %4, %7 : tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x1xf32>
  }
}
