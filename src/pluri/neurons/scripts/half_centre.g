// Half-centre oscillator: two cells that inhibit each other and rebound take turns
method crank_nicolson
setclock 0 0.025

// The area is 1000 um^2, of which 1 mS/cm^2 is 0.01 uS and 1 uF/cm^2 is 0.01 nF.
function cell path voltage ready
    create group {path}
    create compartment {path}/soma -capacitance 0.01 -resistance 1000 -Em -60 -initial_Vm {voltage}
    create rebound_channel {path}/rebound -gbar 0.003 -initial_h {ready}
    create graded_synapse {path}/inhibition -gmax 0.003 -E -80 -half -44 -slope 2
    link {path}/rebound to {path}/soma
    link {path}/inhibition to {path}/soma
end

create group /net
call cell /net/left -60 0.2
call cell /net/right -80 0.6
link /net/left/soma to /net/right/inhibition.presynaptic
link /net/right/soma to /net/left/inhibition.presynaptic

graph /net/*/soma Vm -name voltage -title "They take turns"
graph /net/*/inhibition s -name inhibition -title "Inhibition"

form panel -title "Half-centre"
dialog inhibition -label "inhibition" -value 0.003 -unit uS -command "set /net/*/inhibition gmax {value}"
dialog rebound -label "rebound" -value 0.003 -unit uS -command "set /net/*/rebound gbar {value}"
dialog current -label "current into the left" -value 0 -unit nA -command "set /net/left/soma inject {value}"

reset
step -time 400
