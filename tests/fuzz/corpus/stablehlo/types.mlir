func.func @main(%a: tensor<1x2x!quant.uniform<i8:f32, 0.5>>, %b: tensor<?x4xbf16>, %t: !stablehlo.token, %z: tensor<0x3xcomplex<f64>>) -> tuple<tensor<f8E4M3FN>, tensor<i4>> {
  %0 = stablehlo.constant dense<[(1.0, -2.5), (0x7FF0000000000000, 3.0)]> : tensor<2xcomplex<f64>>
  %1 = stablehlo.convolution(%b, %b) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [2], pad = [[1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<?x4xbf16>, tensor<?x4xbf16>) -> tensor<?x4xbf16>
  return
}
