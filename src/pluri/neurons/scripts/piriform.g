// Piriform-sized network: 400 pyramidal cells, 100 inhibitory ones and 500 fibres, as the model of 1988 had
setclock 0 0.05
seed 1

n_pyramidal = 400
n_feedback = 50
n_feedforward = 50
n_fibres = 500
n_inputs = 20

// A pyramidal cell: soma and four dendritic compartments, with synapses of fibres, of other cells and of inhibition.
create group /proto
create group /proto/pyramidal
create active_compartment /proto/pyramidal/soma -length 20 -diameter 20
create passive_compartment /proto/pyramidal/d[0] -length 100 -diameter 3
link /proto/pyramidal/d[0] to /proto/pyramidal/soma
for i = 1 to 3
    create passive_compartment /proto/pyramidal/d[{i}] -length 100 -diameter {3 - 0.5 * i}
    link /proto/pyramidal/d[{i}] to /proto/pyramidal/d[{i - 1}]
end
create synapse /proto/pyramidal/afferent -tau 2 -gmax 0.004
create synapse /proto/pyramidal/association -tau 3 -gmax 0.001
create dual_exponential_synapse /proto/pyramidal/inhibition -tau_rise 1 -tau_decay 10 -gmax 0.004 -E -75
link /proto/pyramidal/afferent to /proto/pyramidal/d[3]
link /proto/pyramidal/association to /proto/pyramidal/d[1]
link /proto/pyramidal/inhibition to /proto/pyramidal/soma
create axon /proto/pyramidal/axon
link /proto/pyramidal/soma to /proto/pyramidal/axon

create group /proto/inhibitory
create active_compartment /proto/inhibitory/soma -length 15 -diameter 15
create synapse /proto/inhibitory/excitation -tau 2 -gmax 0.0015
link /proto/inhibitory/excitation to /proto/inhibitory/soma
create axon /proto/inhibitory/axon
link /proto/inhibitory/soma to /proto/inhibitory/axon

create group /net
copy /proto/pyramidal to /net/pyramidal -n {n_pyramidal}
copy /proto/inhibitory to /net/feedback -n {n_feedback}
copy /proto/inhibitory to /net/feedforward -n {n_feedforward}
delete /proto
create random_spikes /fibre -rate 8
copy /fibre to /net/fibre -n {n_fibres}
delete /fibre

// Each cell gets inputs from cells that are chosen at random, with delays of 1 to 10 ms.
for i = 0 to n_pyramidal - 1
    for k = 1 to n_inputs
        connect /net/fibre[{floor(rand(0, n_fibres))}] to /net/pyramidal[{i}]/afferent -delay {rand(1, 10)}
        connect /net/pyramidal[{floor(rand(0, n_pyramidal))}]/axon to /net/pyramidal[{i}]/association -delay {rand(1, 10)}
    end
    for k = 1 to n_inputs / 4
        connect /net/feedback[{floor(rand(0, n_feedback))}]/axon to /net/pyramidal[{i}]/inhibition -delay {rand(1, 3)}
        connect /net/feedforward[{floor(rand(0, n_feedforward))}]/axon to /net/pyramidal[{i}]/inhibition -delay {rand(1, 3)}
    end
end
for i = 0 to n_feedback - 1
    for k = 1 to n_inputs
        connect /net/pyramidal[{floor(rand(0, n_pyramidal))}]/axon to /net/feedback[{i}]/excitation -delay {rand(1, 5)}
        connect /net/fibre[{floor(rand(0, n_fibres))}] to /net/feedforward[{i}]/excitation -delay {rand(1, 5)}
    end
end

network_view /net/pyramidal*/axon -name pyramidal -title "Pyramidal cells"
network_view /net/feed*/axon -name inhibitory -title "Inhibitory cells"
graph /net/pyramidal[0]/soma Vm -title "One pyramidal cell"

form panel -title "Piriform-sized network"
dialog rate -label "rate of the fibres" -value 8 -unit Hz -command "set /net/fibre* rate {value}"
dialog association -label "association synapses" -value 0.001 -unit uS -command "set /net/pyramidal*/association gmax {value}"

reset
step -time 100
