"""The blocks of seed 001 about operating a training run, each as a test."""

import time

import capibara.jax as jax
from capibara import _core
import capibara.jax.numpy as jnp
import numpy as np
import pytest


# --- Checkpointing en TPU ----------------------------------------------------------------------------------------------


def test_checkpointing(tmp_path):
    params = {"dense": {"kernel": jnp.arange(12.0).reshape(3, 4), "bias": jnp.zeros(4, jnp.bfloat16)}}
    opt_state = (jnp.int32(1000), jax.tree.map(jnp.ones_like, params))

    from capibara.core.tpu import TPUCheckpointer

    checkpointer = TPUCheckpointer(
        checkpoint_dir=str(tmp_path / "checkpoints/"),
        max_to_keep=3,
        async_checkpointing=True  # No bloquea training
    )

    # Guardar checkpoint
    checkpointer.save(
        step=1000,
        params=params,
        opt_state=opt_state
    )

    # Restaurar
    restored = checkpointer.restore(step=1000)

    assert jax.tree.structure(restored) == jax.tree.structure({"params": params, "opt_state": opt_state})
    for got, expected in zip(jax.tree.leaves(restored), jax.tree.leaves({"params": params, "opt_state": opt_state})):
        assert got.dtype == expected.dtype and np.asarray(got).tobytes() == np.asarray(expected).tobytes()


# --- Real-time Metrics, Alerting ---------------------------------------------------------------------------------------


def test_real_time_metrics_and_alerts(capsys):
    train_step = jax.jit(lambda batch: jnp.mean(batch @ batch))
    dataloader = [jnp.ones((256, 256)) * i for i in range(3)]
    alerts, seen = [], []

    from capibara.core.tpu import TPUMonitor

    # Crear monitor
    monitor = TPUMonitor(
        update_frequency_seconds=0.01,
        enable_prometheus=True,
        prometheus_port=0
    )

    # Configurar alertas
    monitor.set_alert(
        metric="utilization",
        condition="<",
        threshold=0.7,
        action=lambda: alerts.append("⚠️ Low TPU utilization!")
    )

    monitor.set_alert(
        metric="memory_usage_gb",
        condition=">",
        threshold=28,  # 28GB de 32GB
        action=lambda: alerts.append("⚠️ High memory usage!")
    )

    # Monitorear training
    monitor.start()

    for batch in dataloader:
        loss = train_step(batch)

        # Métricas automáticamente logged
        metrics = monitor.get_current_metrics()
        print(f"TPU Utilization: {metrics['utilization']:.1%}")
        print(f"HBM Usage: {metrics['memory_usage_gb']:.1f}GB")
        print(f"TFLOPS: {metrics['current_tflops']:.1f}")
        seen.append(metrics)

    while not alerts:
        time.sleep(0.01)
    monitor.stop()

    assert float(loss) == 1024 and alerts == ["⚠️ Low TPU utilization!"]
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 9 and lines[0].startswith("TPU Utilization: ") and lines[0].endswith("%")
    for metrics in seen:  # the counted operations over the time of a sample, against the peak of their type
        assert metrics["current_tflops"] == 0 or metrics["current_tflops"] * 1e12 / metrics["utilization"] == pytest.approx(
            _core.peak_flops("float32"), rel=1e-6)
        assert metrics["memory_usage_gb"] * 1e9 >= 3 * 256 * 256 * 4
