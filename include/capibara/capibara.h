// Everything a program that uses capibara needs, in one header.
#pragma once

#include <capibara/array.h>
#include <capibara/config.h>
#include <capibara/device.h>
#include <capibara/dtype.h>
#include <capibara/error.h>
#include <capibara/jit.h>
#include <capibara/lax.h>
#include <capibara/primitive.h>
#include <capibara/program.h>
#include <capibara/transforms.h>
#include <capibara/tree.h>
#include <capibara/version.h>
#if __has_include(<capibara/control.h>)
#include <capibara/control.h>
#endif
#if __has_include(<capibara/random.h>)
#include <capibara/random.h>
#endif
