// Everything a program that uses capibara needs, in one header.
#pragma once

#include <capibara/array.h>
#include <capibara/callback.h>
#include <capibara/config.h>
#include <capibara/control.h>
#include <capibara/device.h>
#include <capibara/dlpack.h>
#include <capibara/dtype.h>
#include <capibara/error.h>
#include <capibara/image.h>
#include <capibara/jit.h>
#include <capibara/lax.h>
#include <capibara/linalg.h>
#include <capibara/nn.h>
#include <capibara/numpy.h>
#include <capibara/ops.h>
#include <capibara/primitive.h>
#include <capibara/program.h>
#include <capibara/random.h>
#include <capibara/ref.h>
#include <capibara/scipy.h>
#include <capibara/solve.h>
#include <capibara/transforms.h>
#include <capibara/tree.h>
#include <capibara/version.h>
