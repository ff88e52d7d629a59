// Two neurons: current makes the first fire, and each of its spikes makes the second fire a little later
method crank_nicolson
setclock 0 0.025

create group               /net
create group               /net/a
create active_compartment  /net/a/soma     -length 20 -diameter 20
create passive_compartment /net/a/dend     -length 200 -diameter 2
create synapse             /net/a/dend/syn -tau 2 -gmax 0.005
create axon                /net/a/axon     -threshold 0
link /net/a/dend to /net/a/soma
link /net/a/dend/syn to /net/a/dend
link /net/a/soma to /net/a/axon
copy /net/a to /net/b
connect /net/a/axon to /net/b/dend/syn -delay 5 -weight 1

create pulse_generator /stimulus -delay 5 -width 50 -level 0.2
link /stimulus to /net/a/soma

graph /net/a/soma Vm -name voltage -title "Membrane potential"
graph /net/b/soma Vm -name voltage
graph /net/b/dend/syn g -name synapse -title "Conductance of the synapse"
cell_view /net -title "Both cells"

form panel -title "Two neurons"
dialog amplitude -label "current into the first" -value 0.2 -unit nA -command "set /stimulus level {value}"
dialog strength -label "synapse" -value 0.005 -unit uS -command "set /net/b/dend/syn gmax {value}"
button again -label "Reset and run 80 ms" -command "call again"

function again
    reset
    step -time 80
end

reset
step -time 80
