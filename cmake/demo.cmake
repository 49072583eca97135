# What the demo (tools/capibara/training) links, with src/assembly/native.cpp: the part seen first is built first. It leaves out
# numpy, scipy, plugins, the partitioner, reports, named models and plans for TPUs.

# Parts of the library; cmake/sources.cmake and cmake/kernels.cmake list the sources of each.
set(CAPIBARA_DEMO_PARTS core primitives kernels gemm fused training)
# The fused kernels of the part `fused`, by name: src/kernels/NAME.cpp.
set(CAPIBARA_DEMO_KERNELS flash_attention selective_scan linear_recurrence grouped_matmul moe_routing moe_feed_forward rms_norm layer_norm
                          cross_entropy quantized_matmul)
