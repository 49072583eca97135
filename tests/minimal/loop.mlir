// A while loop that sums the integers below ten.
module @loop {
  func.func public @main() -> tensor<i32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %0:2 = stablehlo.while(%index = %zero, %sum = %zero) : tensor<i32>, tensor<i32>
    cond {
      %limit = stablehlo.constant dense<10> : tensor<i32>
      %1 = stablehlo.compare LT, %index, %limit, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %1 = stablehlo.add %sum, %index : tensor<i32>
      %2 = stablehlo.add %index, %one : tensor<i32>
      stablehlo.return %2, %1 : tensor<i32>, tensor<i32>
    }
    %expected = stablehlo.constant dense<45> : tensor<i32>
    stablehlo.custom_call @check.expect_eq(%0#1, %expected) {has_side_effect = true} : (tensor<i32>, tensor<i32>) -> ()
    return %0#1 : tensor<i32>
  }
}
