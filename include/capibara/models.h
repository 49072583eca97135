// Named models: a graph of named connections (Model), compiled with shapes and a backend into a program (compile).
#pragma once

#include <capibara/models/compile.h>
#include <capibara/models/key.h>
#include <capibara/models/model.h>
#include <capibara/models/protocol.h>
#include <capibara/models/train.h>
#include <capibara/models/value.h>
