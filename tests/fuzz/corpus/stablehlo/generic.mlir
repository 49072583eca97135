#loc = loc("a"("b.py":1:2))
"builtin.module"() <{sym_name = "m"}> ({
  "func.func"() <{function_type = (tensor<2xui8>, tensor<2xui8>) -> tensor<2xui8>, sym_name = "main", sym_visibility = "public"}> ({
  ^bb0(%arg0: tensor<2xui8>, %arg1: tensor<2xui8>):
    %0 = "stablehlo.add"(%arg0, %arg1) : (tensor<2xui8>, tensor<2xui8>) -> tensor<2xui8> loc(#loc)
    %1 = "stablehlo.constant"() <{value = dense<"0x01FF"> : tensor<2xui8>}> : () -> tensor<2xui8>
    %2:2 = "stablehlo.sort"(%0, %1) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<ui8>, %b: tensor<ui8>, %c: tensor<ui8>, %d: tensor<ui8>):
      %3 = "stablehlo.compare"(%a, %b) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<ui8>, tensor<ui8>) -> tensor<i1>
      "stablehlo.return"(%3) : (tensor<i1>) -> ()
    }) : (tensor<2xui8>, tensor<2xui8>) -> (tensor<2xui8>, tensor<2xui8>)
    "func.return"(%2#0) : (tensor<2xui8>) -> ()
  }) : () -> ()
}) : () -> ()
