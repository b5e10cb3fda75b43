"""The few NVML calls the monitor needs, each with its unit in its name; what a driver does not tell is left out."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

# name in our output → metric of NVML's GPM (percent of the cycles of the interval)
GPM = {
    "sm_activity": "NVML_GPM_METRIC_SM_UTIL",
    "sm_occupancy": "NVML_GPM_METRIC_SM_OCCUPANCY",
    "tensor_activity": "NVML_GPM_METRIC_ANY_TENSOR_UTIL",
    "fp32_activity": "NVML_GPM_METRIC_FP32_UTIL",
    "dram_activity": "NVML_GPM_METRIC_DRAM_BW_UTIL",
}

# bits of nvmlDeviceGetCurrentClocksEventReasons
THROTTLE = {
    0x2: "application clocks",
    0x4: "software power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}


def visible(environment: Mapping[str, str] = os.environ) -> str:
    """Index or UUID of CUDA's first device: NVML counts every device, whatever CUDA_VISIBLE_DEVICES says.

    Indices are NVML's where CUDA_DEVICE_ORDER is PCI_BUS_ID, which `host.environment` sets for the workers.
    """
    return environment.get("CUDA_VISIBLE_DEVICES", "").split(",")[0].strip() or "0"


class Device:
    """The first GPU that CUDA may use, through NVML; opening it creates no CUDA context.

    Raises:
        RuntimeError: no NVML library, or no such device; the text says which.
    """

    def __init__(self) -> None:
        try:
            import pynvml

            pynvml.nvmlInit()
            name = visible()
            find = pynvml.nvmlDeviceGetHandleByIndex if name.isdigit() else pynvml.nvmlDeviceGetHandleByUUID
            self.handle = find(int(name) if name.isdigit() else name)
        except ImportError:
            raise RuntimeError("nvidia-ml-py is not installed") from None
        except Exception as error:
            raise RuntimeError(f"NVML: {error}") from None
        self.api: Any = pynvml

    def ask(self, function: str, *arguments: Any) -> Any:
        """The call's answer, or None where this device or driver does not give one."""
        try:
            return getattr(self.api, function)(self.handle, *arguments)
        except (self.api.NVMLError, AttributeError):
            return None

    def describe(self) -> dict[str, Any]:
        """Card, driver and limits."""
        decode = lambda x: x.decode() if isinstance(x, bytes) else x  # noqa: E731
        return {
            "card": decode(self.ask("nvmlDeviceGetName")),
            "driver": decode(self.api.nvmlSystemGetDriverVersion()),
            "power_limit_w": _scaled(self.ask("nvmlDeviceGetEnforcedPowerLimit"), 1e-3),
            "highest_sm_clock_mhz": self.ask("nvmlDeviceGetMaxClockInfo", self.api.NVML_CLOCK_SM),
        }

    def has_gpm(self) -> bool:
        """Whether GPM works here (Hopper and newer)."""
        support = self.ask("nvmlGpmQueryDeviceSupport")
        return bool(support is not None and support.isSupportedDevice)

    def gpm_sample(self) -> Any:
        """A snapshot of the counters; give it to `gpm_between`."""
        sample = self.api.nvmlGpmSampleAlloc()
        self.api.nvmlGpmSampleGet(self.handle, sample)
        return sample

    def free(self, sample: Any) -> None:
        """Return a snapshot's memory."""
        self.api.nvmlGpmSampleFree(sample)

    def gpm_between(self, first: Any, last: Any) -> dict[str, float]:
        """Percent of the cycles between two snapshots in which each unit was active."""
        request = self.api.c_nvmlGpmMetricsGet_t()
        request.version = self.api.NVML_GPM_METRICS_GET_VERSION
        request.numMetrics, request.sample1, request.sample2 = len(GPM), first, last
        for k, name in enumerate(GPM.values()):
            request.metrics[k].metricId = getattr(self.api, name)
        answer = self.api.nvmlGpmMetricsGet(request)
        metrics = (answer or request).metrics
        values = {}
        for k, name in enumerate(GPM):
            if metrics[k].nvmlReturn == self.api.NVML_SUCCESS:
                values[name] = float(metrics[k].value)
        return values

    def reading(self) -> dict[str, Any]:
        """Power in W (instantaneous if told), energy counter in J, clocks in MHz, °C, throttle bits, coarse percent."""
        use = self.ask("nvmlDeviceGetUtilizationRates")
        return {
            "power_w": self._power(),
            "energy_j": _scaled(self.ask("nvmlDeviceGetTotalEnergyConsumption"), 1e-3),
            "sm_clock_mhz": self.ask("nvmlDeviceGetClockInfo", self.api.NVML_CLOCK_SM),
            "memory_clock_mhz": self.ask("nvmlDeviceGetClockInfo", self.api.NVML_CLOCK_MEM),
            "temperature_c": self.ask("nvmlDeviceGetTemperature", self.api.NVML_TEMPERATURE_GPU),
            "throttle": self.ask("nvmlDeviceGetCurrentClocksEventReasons"),
            "coarse_busy": None if use is None else float(use.gpu),
        }

    def _power(self) -> float | None:
        field = getattr(self.api, "NVML_FI_DEV_POWER_INSTANT", None)
        if field is not None:
            values = self.ask("nvmlDeviceGetFieldValues", [field])
            if values and values[0].nvmlReturn == self.api.NVML_SUCCESS:
                return 1e-3 * values[0].value.uiVal
        return _scaled(self.ask("nvmlDeviceGetPowerUsage"), 1e-3)


def _scaled(value: Any, factor: float) -> float | None:
    return None if value is None else factor * value
