// Olfactory bulb, a sketch: mitral cells drive granule cells, which inhibit them and their neighbours
setclock 0 0.05
seed 1

n_mitral = 12
n_granule = 48

create group /proto
create group /proto/mitral
create active_compartment /proto/mitral/soma -length 20 -diameter 20
create passive_compartment /proto/mitral/tuft -length 200 -diameter 3
link /proto/mitral/tuft to /proto/mitral/soma
create synapse /proto/mitral/odour -tau 3 -gmax 0.003
create dual_exponential_synapse /proto/mitral/inhibition -tau_rise 2 -tau_decay 15 -gmax 0.002 -E -75
link /proto/mitral/odour to /proto/mitral/tuft
link /proto/mitral/inhibition to /proto/mitral/soma
create axon /proto/mitral/axon
link /proto/mitral/soma to /proto/mitral/axon

create group /proto/granule
create integrate_and_fire /proto/granule/cell -capacitance 0.05 -resistance 200 -threshold -50
create synapse /proto/granule/excitation -tau 3 -gmax 0.002
link /proto/granule/excitation to /proto/granule/cell

create group /bulb
copy /proto/mitral to /bulb/mitral -n {n_mitral}
copy /proto/granule to /bulb/granule -n {n_granule}
delete /proto

// An odour drives each mitral cell by a rate of its own.
create group /nerve
for i = 0 to n_mitral - 1
    create random_spikes /nerve/fibre[{i}] -rate {60 + 120 * exp(-(i - 4)^2 / 8)}
    connect /nerve/fibre[{i}] to /bulb/mitral[{i}]/odour -delay 1
end

// A granule cell reaches the mitral cells nearby: each excites it, and is inhibited by it.
for g = 0 to n_granule - 1
    centre = floor(g * n_mitral / n_granule)
    for k = -2 to 2
        m = (centre + k) % n_mitral
        connect /bulb/mitral[{m}]/axon to /bulb/granule[{g}]/excitation -delay 1
        connect /bulb/granule[{g}]/cell to /bulb/mitral[{m}]/inhibition -delay 1
    end
end

network_view /bulb/mitral*/axon -name mitral -title "Mitral cells"
network_view /bulb/granule*/cell -name granule -title "Granule cells"
graph /bulb/mitral[4]/soma Vm -name voltage -title "Mitral cells 4 and 10"
graph /bulb/mitral[10]/soma Vm -name voltage

form panel -title "Olfactory bulb"
dialog inhibition -label "inhibition" -value 0.002 -unit uS -command "set /bulb/mitral*/inhibition gmax {value}"
dialog odour -label "strength of the odour" -value 0.003 -unit uS -command "set /bulb/mitral*/odour gmax {value}"

reset
step -time 200
