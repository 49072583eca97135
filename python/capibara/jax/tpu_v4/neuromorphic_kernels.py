"""Recurrences in time: spiking neurons and the state space models of Mamba."""
from capibara._modules import explain_missing as _explain_missing

_explain_missing(__name__, later=dict.fromkeys((
    "linear_recurrence", "mamba_ssm_kernel", "selective_scan", "spiking_neuron", "ssd"
), "capibara.kernels"))
