"""The shared real series that whole-library tests run over."""

SERIES = (
    "aunp_dmsa_nacl",
    "flu_quinine",
    "h148g_cl_ph74",
    "nttA04_cl_em",
    "clariostar_dye",
    "nanodrop_anisaldehyde",
    "rhodamine6g_meoh",
)
