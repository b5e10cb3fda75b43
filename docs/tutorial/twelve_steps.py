# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Twelve steps
#
# **You get:** the whole path from spectra to a saved model, in the twelve steps of the original blueprint for this
# method: set-up, configuration, device-resident data, metric network, Christoffel symbols, shooting, coupled neural
# ODE, mixed-precision training, monitoring, validation, benchmarking, export. **It takes:** ten minutes to read and
# about a minute to run on one CPU core.
#
# The blueprint's recipe works, and on few standards it is *worse than interpolation*. Steps 6, 7 and 10 show where and
# what geonode does instead. Every number below was computed when this page was built, on whatever machine built it.

# %% [markdown]
# ## 1 · Set-up
#
# `geonode doctor` says what a machine has. Everything here runs on a CPU; on a GPU only `device` changes.

# %%
import time

import matplotlib.pyplot as plt
import numpy as np
import torch

import geonode

torch.set_num_threads(1)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
print(f"geonode {geonode.__version__}, torch {torch.__version__.split('+')[0]}, {device.type}")

# %% [markdown]
# ## 2 · Configuration
#
# One validated object holds every setting. `GeodesicConfig()` are geonode's defaults, `GeodesicConfig.blueprint()` is
# the original recipe. The table lists where they differ.

# %%
default = geonode.GeodesicConfig(flow="path_independent")  # by itself GeodesicConfig() takes the pre-trained flow
blueprint = geonode.GeodesicConfig.blueprint(precision="32-true")  # its own precision, 16-mixed, needs CUDA
for name in ("warp", "path", "flow", "flow_hidden", "solver", "teacher", "epochs", "batch_size", "precision"):
    print(f"{name:12} blueprint {getattr(blueprint, name)!s:12} geonode {getattr(default, name)}")

# %% [markdown]
# A setting that cannot work is refused in a sentence, before anything is computed:

# %%
try:
    geonode.GeodesicConfig(path="shooting", solver="quadrature")
except geonode.errors.InputError as error:
    print(error)

# %% [markdown]
# ## 3 · Device-resident data
#
# Six standards of a simulated arsenic assay, gray → blue → gray. The tensors stay on the device that made them, and the
# truth is known at every concentration. Training draws its batches on the device too: a pair of standards is two
# indices, drawn from (seed, epoch, step), so nothing is copied and any batch can be drawn again.

# %%
assay = geonode.simulate_assay(wavelengths=np.arange(400.0, 801.0, 8.0), noise=0.003, seed=0, device=device)
concentrations, spectra, wavelengths = assay.tensors()
print(assay.shape, spectra.device.type, spectra.dtype)

pairs = geonode.data.PairSampler(levels=len(assay.levels), batch_size=30, seed=0, device=device)
source, target = pairs.batch(epoch=0, step=0)
print(f"{len(source)} ordered pairs: {assay.levels[source[0]]:g} to {assay.levels[target[0]]:g} ppb, …")

# %% alt="Spectra of six standards: absorbance rises and falls again with concentration"
colours = plt.colormaps["viridis"](np.linspace(0, 0.9, len(assay.levels)))
plt.figure(figsize=(6, 3))
for level, spectrum, colour in zip(assay.levels, assay.spectra, colours, strict=True):
    plt.plot(assay.wavelengths, spectrum, color=colour, label=f"{level:g} ppb")
plt.xlabel("wavelength, nm")
plt.ylabel("absorbance")
plt.legend()
plt.show()

# %% [markdown]
# ## 4 · Metric network
#
# A metric says how far apart two concentrations are. The network maps (concentration, wavelength), both scaled to order
# one, to a positive number g. The blueprint's: 2 → 64 → 64 → 1, softplus, and a floor of 0.1.

# %%
metric = geonode.MetricNetwork(hidden=(64, 64), seed=0).double()
c = torch.linspace(0, 1, 601, dtype=torch.float64)
g, slope = metric.value_and_derivative(c, torch.zeros_like(c))
print(f"g between {g.min().item():.3f} and {g.max().item():.3f}; its derivative comes from the same pass")

# %% [markdown]
# ## 5 · Christoffel symbols
#
# Γ = ½ g′/g bends the path. Three ways: exact (the default), finite differences (the blueprint's), a table.

# %%
from geonode.christoffel import Grid

exact = geonode.christoffel(metric, c, torch.zeros_like(c))
differences = geonode.christoffel(metric, c, torch.zeros_like(c), method="finite_difference")
table = Grid(metric, shape=(500, 101))
print(f"finite differences differ from exact by at most {(differences - exact).abs().max().item():.1e}")
error = table.interpolation_error()
print(f"a 500 × 101 table by at most {error.maximum:.1e}, where Γ itself has an rms of {error.scale:.2f}")

# %% [markdown]
# ## 6 · Shooting
#
# A geodesic from a to b is found by shooting: guess the initial velocity, integrate, correct by Newton. A failure is a
# value, `status`, never a silent wrong answer.
#
# **With one analyte none of it is needed.** Along arc length s = ∫√g dc every geodesic is a straight line, so one
# quadrature gives the path ([why](../concepts/one_dimension.md)). Shooting stays for two analytes and more.

# %%
problems = 300
start = torch.rand(problems, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
end = torch.rand(problems, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
wavelength = torch.zeros(problems, dtype=torch.float64)

with torch.no_grad():
    begin = time.perf_counter()
    shot = geonode.shoot(metric, start, end, wavelength)
    shooting_s = time.perf_counter() - begin
    begin = time.perf_counter()
    closed = geonode.arc_length_geodesic(metric, start, end, wavelength)
    closed_s = time.perf_counter() - begin

print(f"shooting: {int(shot.converged.sum())} of {problems} converged in {shooting_s:.2f} s")
print(f"closed form: {int(closed.converged.sum())} of {problems} in {closed_s:.3f} s")
both = shot.converged & closed.converged
difference = ((shot.initial_velocity - closed.initial_velocity).abs() / closed.initial_velocity.abs())[both]
print(f"initial velocities agree within {difference.max().item():.0e}, relatively")

# %% [markdown]
# ## 7 · Coupled neural ODE
#
# Position, velocity and absorbance are one state: dc/dt = v, dv/dt = −Γ v², dA/dt = F. The blueprint's F(c, v, λ) is
# free. Then a path that goes nowhere may still change the spectrum, and two ways to one concentration may end in two
# spectra (below, both untrained). geonode's F = (dŝ/dt)·h(ŝ, λ) cannot: the spectrum is a function of concentration
# alone.

# %%
from geonode.flow import CoupledSpectralODE

grid = torch.from_numpy(assay.wavelengths.copy())
here = torch.full((1, 1), 0.3, dtype=torch.float64)
there = torch.full((1, 1), 0.8, dtype=torch.float64)
still = torch.zeros(1, 1, len(grid))
with torch.no_grad():
    for name, config in (("blueprint", blueprint.replace(solver="rk4")), ("geonode", default)):
        ode = CoupledSpectralODE(grid, config)
        at_rest = ode(still, here, here).abs().max().item()
        round_trip = ode(ode(still, here, there), there, here).abs().max().item()
        print(f"{name:9}  from c to c: {at_rest:.1e}   there and back: {round_trip:.1e}")

# %% [markdown]
# ## 8 · Mixed-precision training
#
# `precision` is `32-true`, `64-true`, `bf16-mixed` or, on CUDA, `16-mixed` with loss scaling. Only the networks' matrix
# products run in the lower precision; paths, Christoffel symbols and losses never do.
#
# Both recipes are trained below. So that this page takes a minute, the blueprint's shooting and adjoint are replaced by
# the closed form of step 6 and RK4, which give the same paths, its mega-batches by batches of all 30 pairs, and it has
# 20 epochs instead of 500.

# %%
begin = time.perf_counter()
model = geonode.fit(assay, default)
print(f"geonode, {default.epochs} epochs: {time.perf_counter() - begin:.0f} s")

short = blueprint.replace(path="arc_length", solver="rk4", ode_steps=8, epochs=20, batch_size=30, micro_batch=30)
begin = time.perf_counter()
original = geonode.fit(assay, short)
print(f"blueprint, {short.epochs} epochs: {time.perf_counter() - begin:.0f} s")

mixed = geonode.fit(assay, default.replace(precision="bf16-mixed", epochs=10))
full = geonode.fit(assay, default.replace(epochs=10))
apart = np.abs(mixed.predict_spectra(25.0)[0].values - full.predict_spectra(25.0)[0].values).max()
print(f"bf16 against fp32 after 10 epochs: spectra differ by at most {apart:.1e} absorbance")

# %% [markdown]
# ## 9 · Monitoring
#
# `model.history` holds the loss of every epoch. `fit(..., log_dir="run")` also writes TensorBoard and CSV: loss parts,
# gradient norms, steps per second, range of the metric, and on NVIDIA GPUs power, memory and activity. geonode starts
# near its end because the output layer is solved by least squares before the first step.

# %% alt="Loss by epoch on a logarithmic axis: geonode starts low, the blueprint falls slowly"
plt.figure(figsize=(6, 3))
plt.semilogy([row["total"] for row in original.history], label="blueprint", linestyle="--")
plt.semilogy([row["total"] for row in model.history], label="geonode")
plt.xlabel("epoch")
plt.ylabel("loss")
plt.legend()
plt.show()

# %% [markdown]
# ## 10 · Validation
#
# First against the known truth, between the standards. The simple methods are the competition.

# %%
from scipy.interpolate import CubicSpline, PchipInterpolator

between = [5.0, 15.0, 25.0, 35.0, 50.0]
truth = assay.truth(between).cpu().numpy()
levels, means = assay.levels, assay.level_means()
predicted = {
    "blueprint": original.predict_spectra(between)[0].values,
    "linear": np.stack([np.interp(between, levels, column) for column in means.T], 1),
    "PCHIP": PchipInterpolator(levels, means)(between),
    "cubic": CubicSpline(levels, means, bc_type="natural")(between),
    "geonode": model.predict_spectra(between)[0].values,
}
for name, values in predicted.items():
    print(f"{name:10} {1000 * np.sqrt(np.mean((values - truth) ** 2)):6.1f} × 10⁻³ absorbance")

# %% [markdown]
# The blueprint's network loses to linear interpolation, and not only because its training was short: fully trained on
# sixteen real series it was 2.5 times as far off as the best simple method ([design](../design.md), section 6). It sees
# raw concentration, and five or six levels do not say what happens between them. What replaces it: a Gaussian process
# along the learned arc length teaches the flow, and the flow sees arc length. On this smooth, evenly spaced assay a
# cubic spline is about as good; on log-spaced and saturating series it is not
# ([results](../benchmarks/results.md)).
#
# With real data there is no truth. Then one concentration at a time is left out, everything is fitted without it, and
# the winner is chosen by a second, inner leave-one-out:

# %%
report = geonode.evaluate(assay, methods=["linear", "pchip", "cubic", "gp"])
for name, result in report.results.items():
    print(f"{name:7} RMSE by level left out: " + "  ".join(f"{value:.4f}" for value in result.rmse))
print(report.choice_sentence())

# %% [markdown]
# And the question most people come with: the concentration of an unknown, with its interval and a verdict.

# %%
unknown = geonode.simulate_assay([27.0], assay.wavelengths, noise=0.003, seed=9).spectra[0]
print(model.quantify(unknown).sentence("ppb"))

# %% [markdown]
# ## 11 · Benchmarking
#
# `python -m geonode.bench` measures this machine against the limits of its hardware and against other libraries. Here
# only one number: paths per second, to set beside the blueprint's goal of 6 000 trajectories a second on an A100.

# %%
print(f"shooting:    {problems / shooting_s:12,.0f} paths a second")
print(f"closed form: {problems / closed_s:12,.0f} paths a second")

# %% [markdown]
# These are times of one busy or idle core, in float64. Recorded ones, with the card named, are in
# [results](../benchmarks/results.md).
#
# ## 12 · Export
#
# `save` writes one file: tensors in safetensors, metadata as JSON, a checksum, no pickle. The reloaded model predicts
# the same bits.

# %%
import tempfile
from pathlib import Path

folder = tempfile.TemporaryDirectory()
bundle = Path(folder.name) / "assay.bundle"
model.save(bundle)
again = geonode.load(bundle)
print(f"{bundle.name}: {bundle.stat().st_size / 1000:.0f} kB")
print("same prediction:", np.array_equal(again.predict_spectra(25.0)[0], model.predict_spectra(25.0)[0]))

# %% [markdown]
# For places without torch there is ONNX, and `geonode_runtime`, which needs numpy and onnxruntime only. The export is
# compared with the library before it is written, and refused where it differs too much ([Export and the
# runtime](../export.md)).

# %%
import geonode_runtime
from geonode.export.export import export_onnx

onnx = Path(folder.name) / "assay.onnx"
export_onnx(model, onnx)  # as `geonode export assay.bundle --onnx assay.onnx` does
exported = geonode_runtime.load(onnx)
difference = np.abs(exported.predict([25.0])[0] - model.predict_spectra([25.0])[0].values).max()
print(f"{onnx.name}: {onnx.stat().st_size / 1e6:.1f} MB, spectra differ by at most {difference:.0e}")
print("library:", model.quantify(unknown).sentence("ppb"))
print("runtime:", exported.quantify(unknown).sentence("ppb"))
folder.cleanup()
