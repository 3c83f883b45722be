// The dialect `elementwise`: functions of whole vectors, one number at a time.

include "mlir/IR/OpBase.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Elementwise_Dialect : Dialect {
  let name = "elementwise";
  let cppNamespace = "::elementwise";
  let summary = "Functions that are applied to each element of vectors";
}

class Elementwise_Op<string mnemonic, list<Trait> traits = []> : Op<Elementwise_Dialect, mnemonic, traits>;

def Elementwise_MapOp : Elementwise_Op<"map", [Symbol, IsolatedFromAbove, SingleBlock]> {
  let summary = "A kernel: its body says what becomes of one element of each input";
  let description = [{
    ```mlir
    elementwise.map @blend {
    ^bb0(%x: f32, %y: f32):
      %weight = elementwise.sigmoid %x : f32
      %product = arith.mulf %weight, %y : f32
      elementwise.yield %product : f32
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name $body attr-dict";
  let hasVerifier = 1;
}

def Elementwise_SigmoidOp : Elementwise_Op<"sigmoid", [Pure, SameOperandsAndResultType]> {
  let summary = "1 / (1 + exp(-x))";
  let arguments = (ins AnyTypeOf<[F16, F32, F64]>:$operand);
  let results = (outs AnyTypeOf<[F16, F32, F64]>:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

def Elementwise_YieldOp : Elementwise_Op<"yield", [Terminator, HasParent<"MapOp">]> {
  let summary = "The element that comes out";
  let arguments = (ins AnyTypeOf<[F16, F32, F64]>:$operand);
  let assemblyFormat = "$operand attr-dict `:` type($operand)";
}
