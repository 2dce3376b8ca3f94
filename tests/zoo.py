"""Small networks that between them show every family, variant and option."""

STATIC = (
    "RKCNN-E-3@k=8",
    "RKCNN-I-2@k=8",
    "RKCNN-R-3_2@k=8_12",
    "RKCNN-I-2@k=8,r=2,sweeps=2",
    "RKCNN-R-2@k=8,y=off",
    "RKCNN-I-3@k=8,shared=on",
    "RKCNN-I-2_2@k=8,merge=concat",
    "RKCNN-E-2_2@k=8,merge=concat",
    "RKCNN-R-2_2@k=8,norm=gn,attention=off,multiscale=off",
    "RKCNN-I-2@k=8,stem=conv,norm=bn",
    "ResNet@k=8,r=2",
    "ResNet-bottleneck@k=8_12",
    "RKNN-rk4_38@k=8_8",
    "RKNN-dopri5@k=8,r=2",
    "RKNet-rk4_38@k=8",
    "RKNet-rk4_38@k=8_8,statistics=each",
    "ODENet-ab@k=8",
    "ODENet-ab@k=8,norm=bn,statistics=each",
    "SONODE@k=8",
    "ANODE@k=8_8,p=3",
    "DenseNet-2_2@k=8",
    "CliqueNet-3@k=8",
    "Momentum@k=8",
    "Momentum@k=8_8,v0=learned",
    "LM@k=8,r=3",
    "Leapfrog@k=8_8",
    "Midpoint@k=8,r=3",
    "Hamiltonian@k=8_8",
    "Identity@k=8_8_8",
)
"""Known beforehand: torch.compile takes them whole."""

SOLVED = (
    "RKNet-radau3@k=8",
    "RKNN-gauss2@k=8_8",
    "RKNet-dopri5@k=8,tol=0.01",
    "RKNN-tsit5@k=8,tol=0.01",
    "ODENet-abm@k=8",
    "ODENet-abm@k=8_8,converge=image",
    "ODENet-ab@k=8,adjoint=on",
    "SONODE-gauss1@k=8",
    "ANODE-radau2@k=8_8",
)
"""Implicit and adaptive, where the data decides how long it takes, and adjoint: these run eagerly."""

ZOO = STATIC + SOLVED
