// Conversions between numbers: integers to floats and back, and floats of 16, 32 and 64 bits.
#include <cmath>
#include <stdexcept>

#include "backends/cpu/llvm/function_emitter.h"

namespace capibara::cpu {

namespace {

llvm::Type* like(llvm::Type* shape, llvm::Type* element) {
  auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(shape);
  return vector ? llvm::FixedVectorType::get(element, vector->getNumElements()) : element;
}

}  // namespace

llvm::Value* FunctionEmitter::from_integer(bool is_signed, llvm::Value* value, llvm::Type* to) {
  auto convert = [&](llvm::Value* integer, llvm::Type* type) {
    return is_signed ? b_.CreateSIToFP(integer, type) : b_.CreateUIToFP(integer, type);
  };
  llvm::Type* result = like(value->getType(), to);
  const bool rounds_twice =
      !is_x86(target_) && result->isVectorTy() && to->isFloatTy() && value->getType()->getScalarSizeInBits() == 64;
  if (!rounds_twice) return convert(value, result);
  // On NEON, LLVM converts vectors through f64, which rounds twice; the scalar instruction rounds once.
  llvm::Value* lanes = llvm::PoisonValue::get(result);
  for (uint64_t lane = 0; lane < static_cast<uint64_t>(lanes_); ++lane) {
    lanes = b_.CreateInsertElement(lanes, convert(b_.CreateExtractElement(value, lane), to), lane);
  }
  return lanes;
}

// Toward zero, saturating; NaN becomes 0. x86_64 has no such instruction, and LLVM would scalarise vectors: there the
// bounds are selected after an instruction that is correct between them.
llvm::Value* FunctionEmitter::to_integer(bool is_signed, llvm::Value* value, llvm::Type* to) {
  llvm::Type *from = value->getType(), *result = like(from, to);
  if (!is_x86(target_) || !from->isVectorTy()) {
    const auto intrinsic = is_signed ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
    return b_.CreateIntrinsic(intrinsic, {result, from}, {value});
  }
  const unsigned width = to->getIntegerBitWidth();
  const double beyond = std::ldexp(1.0, static_cast<int>(is_signed ? width - 1 : width));
  const double least = is_signed ? -beyond : 0;
  auto bound = [&](const llvm::APInt& integer) { return llvm::ConstantInt::get(result, integer); };
  const auto low = is_signed ? llvm::APInt::getSignedMinValue(width) : llvm::APInt(width, 0);
  const auto high = is_signed ? llvm::APInt::getSignedMaxValue(width) : llvm::APInt::getMaxValue(width);
  llvm::Value* whole = is_signed ? b_.CreateFPToSI(value, result) : b_.CreateFPToUI(value, result);
  whole = b_.CreateSelect(b_.CreateFCmpOLT(value, llvm::ConstantFP::get(from, beyond)), whole, bound(high));
  whole = b_.CreateSelect(b_.CreateFCmpOGE(value, llvm::ConstantFP::get(from, least)), whole, bound(low));
  // Comparisons with NaN are false, and the lower bound of an unsigned number is 0 already.
  if (!is_signed) return whole;
  return b_.CreateSelect(b_.CreateFCmpORD(value, value), whole, llvm::Constant::getNullValue(result));
}

llvm::Value* FunctionEmitter::convert_float(Scalar from, Scalar to, llvm::Value* value) {
  llvm::Type* shape = value->getType();
  llvm::Type *f32 = like(shape, b_.getFloatTy()), *f64 = like(shape, b_.getDoubleTy());
  llvm::Type *i16 = like(shape, b_.getInt16Ty()), *i32 = like(shape, b_.getInt32Ty());
  auto number = [&](uint32_t bits) { return llvm::ConstantInt::get(i32, bits); };
  if (byte_size(from) == 2 && byte_size(to) == 2 && from != to) {
    return convert_float(Scalar::f32, to, convert_float(from, Scalar::f32, value));
  }
  if (from == Scalar::bf16) {
    value = b_.CreateBitCast(b_.CreateShl(b_.CreateZExt(value, i32), number(16)), f32);
  } else if (from == Scalar::f16) {
    value = half_to_float(value);
  }
  if (to == Scalar::f64) return from == Scalar::f64 ? value : b_.CreateFPExt(value, f64);
  if (to == Scalar::f32) return from == Scalar::f64 ? b_.CreateFPTrunc(value, f32) : value;
  if (from == Scalar::f64) {
    throw std::runtime_error("emit: " + function_.name + " converts from 64 to 16 bits at once; go through 32 bits");
  }
  if (to == Scalar::f16) return float_to_half(value);
  // To the nearest bf16, ties to even; a NaN stays NaN and becomes quiet.
  if (!is_x86(target_) && has_feature(target_, "+bf16")) {
    return b_.CreateBitCast(b_.CreateFPTrunc(value, like(shape, llvm::Type::getBFloatTy(context_))), i16);
  }
  llvm::Value* bits = b_.CreateBitCast(value, i32);
  llvm::Value* upper = b_.CreateLShr(bits, number(16));
  llvm::Value* odd = b_.CreateAnd(upper, number(1));
  llvm::Value* rounded = b_.CreateLShr(b_.CreateAdd(bits, b_.CreateAdd(odd, number(0x7fff))), number(16));
  llvm::Value* quiet = b_.CreateOr(upper, number(0x40));
  return b_.CreateTrunc(b_.CreateSelect(b_.CreateFCmpUNO(value, value), quiet, rounded), i16);
}

// On x86_64 only F16C converts f16; without it LLVM would call runtime library functions, lane by lane.
bool FunctionEmitter::converts_halves() const { return !is_x86(target_) || has_feature(target_, "+f16c"); }

llvm::Value* FunctionEmitter::half_to_float(llvm::Value* value) {
  llvm::Type* shape = value->getType();
  llvm::Type *f32 = like(shape, b_.getFloatTy()), *i32 = like(shape, b_.getInt32Ty());
  if (converts_halves()) return b_.CreateFPExt(b_.CreateBitCast(value, like(shape, b_.getHalfTy())), f32);
  auto number = [&](uint32_t bits) { return llvm::ConstantInt::get(i32, bits); };
  llvm::Value* bits = b_.CreateZExt(value, i32);
  llvm::Value* sign = b_.CreateShl(b_.CreateAnd(bits, number(0x8000)), number(16));
  llvm::Value* size = b_.CreateShl(b_.CreateAnd(bits, number(0x7fff)), number(13));
  // Exponents of f32 are 112 greater; those of infinities and NaN 224. A NaN becomes quiet.
  llvm::Value* normal = b_.CreateAdd(size, number(112u << 23));
  llvm::Value* special = b_.CreateAdd(size, number(224u << 23));
  llvm::Value* is_nan = b_.CreateICmpSGT(size, number(0x7c00u << 13));
  special = b_.CreateSelect(is_nan, b_.CreateOr(special, number(0x400000)), special);
  // Denormals: 2^-14 plus their digits, minus 2^-14. No intermediate f32 is denormal, which flushing would change.
  llvm::Value* shifted = b_.CreateBitCast(b_.CreateAdd(size, number(113u << 23)), f32);
  llvm::Value* least = b_.CreateBitCast(number(113u << 23), f32);
  llvm::Value* denormal = b_.CreateBitCast(b_.CreateFSub(shifted, least), i32);
  llvm::Value* result = b_.CreateSelect(b_.CreateICmpSLT(size, number(0x7c00u << 13)), normal, special);
  result = b_.CreateSelect(b_.CreateICmpSLT(size, number(0x0400u << 13)), denormal, result);
  return b_.CreateBitCast(b_.CreateOr(result, sign), f32);
}

llvm::Value* FunctionEmitter::float_to_half(llvm::Value* value) {
  llvm::Type* shape = value->getType();
  llvm::Type *f32 = like(shape, b_.getFloatTy()), *i32 = like(shape, b_.getInt32Ty());
  llvm::Type* i16 = like(shape, b_.getInt16Ty());
  if (converts_halves()) return b_.CreateBitCast(b_.CreateFPTrunc(value, like(shape, b_.getHalfTy())), i16);
  auto number = [&](uint32_t bits) { return llvm::ConstantInt::get(i32, bits); };
  llvm::Value* bits = b_.CreateBitCast(value, i32);
  llvm::Value* sign = b_.CreateAnd(b_.CreateLShr(bits, number(16)), number(0x8000));
  llvm::Value* size = b_.CreateAnd(bits, number(0x7fffffff));
  // To nearest, ties to even; rounding past the largest number carries into infinity.
  llvm::Value* odd = b_.CreateAnd(b_.CreateLShr(size, number(13)), number(1));
  llvm::Value* rounded = b_.CreateAdd(b_.CreateAdd(size, odd), number(0xfffu - (112u << 23)));
  llvm::Value* normal = b_.CreateLShr(rounded, number(13));
  // Below 2^-14, adding 0.5 rounds to a multiple of 2^-24.
  llvm::Value* half = llvm::ConstantFP::get(f32, 0.5);
  llvm::Value* sum = b_.CreateBitCast(b_.CreateFAdd(b_.CreateBitCast(size, f32), half), i32);
  llvm::Value* denormal = b_.CreateSub(sum, number(0x3f000000));
  llvm::Value* is_nan = b_.CreateICmpSGT(size, number(0x7f800000));
  llvm::Value* quiet = b_.CreateOr(b_.CreateAnd(b_.CreateLShr(size, number(13)), number(0x3ff)), number(0x7e00));
  llvm::Value* special = b_.CreateSelect(is_nan, quiet, number(0x7c00));
  llvm::Value* result = b_.CreateSelect(b_.CreateICmpSLT(size, number(0x47800000)), normal, special);
  result = b_.CreateSelect(b_.CreateICmpSLT(size, number(0x38800000)), denormal, result);
  return b_.CreateTrunc(b_.CreateOr(result, sign), i16);
}

}  // namespace capibara::cpu
