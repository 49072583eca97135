// jax.scipy: special functions, distributions, linear algebra, signals and images.
#pragma once

#include <capibara/scipy/fft.h>
#include <capibara/scipy/kde.h>
#include <capibara/scipy/linalg.h>
#include <capibara/scipy/ndimage.h>
#include <capibara/scipy/signal.h>
#include <capibara/scipy/special.h>
#include <capibara/scipy/stats.h>
