// Inferior olive, a sketch: cells that rebound after inhibition are joined by gap junctions
method crank_nicolson
setclock 0 0.025
seed 1

n = 6
create group /olive
for i = 0 to n - 1
    create group /olive/cell[{i}]
    create compartment /olive/cell[{i}]/soma -capacitance 0.01 -resistance 1000 -Em -60 -axial_resistance 1000 -initial_Vm {rand(-75, -55)}
    create rebound_channel /olive/cell[{i}]/rebound -gbar 0.003
    create graded_synapse /olive/cell[{i}]/inhibition -gmax 0.002 -E -80
    link /olive/cell[{i}]/rebound to /olive/cell[{i}]/soma
    link /olive/cell[{i}]/inhibition to /olive/cell[{i}]/soma
end

// Gap junctions join neighbours, and each cell inhibits the one half-way round.
for i = 1 to n - 1
    link /olive/cell[{i - 1}]/soma to /olive/cell[{i}]/soma
end
for i = 0 to n - 1
    link /olive/cell[{(i + n / 2) % n}]/soma to /olive/cell[{i}]/inhibition.presynaptic
end

graph /olive/*/soma Vm -name voltage -title "Olivary cells"
cell_view /olive -low -80 -high -25 -title "Joined by gap junctions"

form panel -title "Inferior olive"
dialog coupling -label "resistance of half a gap junction" -value 1000 -unit MOhm -command "set /olive/*/soma axial_resistance {value}"
dialog inhibition -label "inhibition" -value 0.002 -unit uS -command "set /olive/*/inhibition gmax {value}"

reset
step -time 400
