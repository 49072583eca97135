module @jit_named_types attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main() {
    %cst = stablehlo.constant dense<[[-0.2265625, 0.1328125, 0.19140625, -0.18359375, -0.14453125, 0.22265625], [8.593750e-02, -0.2421875, -2.343750e-02, 2.500000e-01, -3.906250e-02, -0.23828125], [0.1015625, 0.21484375, -1.562500e-01, -1.718750e-01, 0.19921875, 0.12109375], [-0.23046875, -6.250000e-02, 2.500000e-01, -3.906250e-03, -0.24609375, 0.06640625]]> : tensor<4x6xf32>
    %cst_0 = stablehlo.constant dense<[[-0.2265625, 0.1328125, 0.19140625, -0.18359375], [-0.14453125, 0.22265625, 8.593750e-02, -0.2421875], [-2.343750e-02, 2.500000e-01, -3.906250e-02, -0.23828125], [0.1015625, 0.21484375, -1.562500e-01, -1.718750e-01], [0.19921875, 0.12109375, -0.23046875, -6.250000e-02], [2.500000e-01, -3.906250e-03, -0.24609375, 0.06640625]]> : tensor<6x4xf32>
    %cst_1 = stablehlo.constant dense<[[2.187500e+00, 3.000000e+00, -3.000000e+00, -2.250000e+00], [3.562500e+00, 1.312500e+00, -3.937500e+00, -3.125000e-01], [4.000000e+00, -6.875000e-01, -3.812500e+00, 1.687500e+00], [3.375000e+00, -2.562500e+00, -2.750000e+00, 3.250000e+00], [1.875000e+00, -3.750000e+00, -9.375000e-01, 4.000000e+00], [-1.250000e-01, -3.937500e+00, 1.125000e+00, 3.687500e+00], [-2.062500e+00, -3.125000e+00, 2.875000e+00, 2.375000e+00], [-3.500000e+00, -1.500000e+00, 3.875000e+00, 5.000000e-01]]> : tensor<8x4xf32>
    %0 = call @program(%cst, %cst_0, %cst_1) : (tensor<4x6xf32>, tensor<6x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %cst_2 = stablehlo.constant dense<[[-0.0686128885, -0.00487907231, 0.0699365661, -0.0117870942], [0.0996147394, -0.0560614094, -0.0819235593, 0.0797471925], [0.162375301, -0.108038902, -0.129933298, 1.433830e-01], [0.114405289, -0.0881966799, -0.0872098655, 0.112540074], [0.0747143626, -0.0421114862, -0.0598600134, 0.0596852452], [0.0915270447, -0.0084965527, -0.0862613767, 0.0322638154], [0.07872653, 0.00341437012, -0.0793845057, 0.0159144849], [-0.0868969261, 0.0502640381, 0.0709115863, -0.0711320192]]> : tensor<8x4xf32>
    stablehlo.custom_call @check.expect_almost_eq(%0, %cst_2) {has_side_effect = true} : (tensor<8x4xf32>, tensor<8x4xf32>) -> ()
    return
  }
  sdy.mesh @mesh = <["data"=4, "model"=2]> {stablehlo.mesh = {axes = [{name = "data", size = 4 : i64}, {name = "model", size = 2 : i64}]}}
  func.func private @program(%arg0: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>}, %arg1: tensor<6x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>}, %arg2: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) -> (tensor<8x4xf32> {jax.result_info = "result", sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) {
    %0 = stablehlo.dot_general %arg2, %arg0, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    %1 = sdy.sharding_constraint %0 <@mesh, [{"data"}, {"model"}]> : tensor<8x6xf32>
    %2 = stablehlo.tanh %1 : tensor<8x6xf32>
    %3 = sdy.sharding_constraint %2 <@mesh, [{"data"}, {"model"}]> : tensor<8x6xf32>
    %4 = stablehlo.dot_general %3, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x6xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
    %5 = sdy.sharding_constraint %4 <@mesh, [{"data"}, {}]> : tensor<8x4xf32>
    return %5 : tensor<8x4xf32>
  }
}
