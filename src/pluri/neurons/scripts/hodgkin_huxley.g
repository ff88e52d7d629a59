// Hodgkin-Huxley patch: how the current sets the rate, and what blocking a channel does
method crank_nicolson
setclock 0 0.025

// The area is 1000 um^2: 1 uA/cm^2 is 0.01 nA.
side = sqrt(1000 / pi)
create active_compartment /patch -length {side} -diameter {side} -inject 0.1
create axon /axon
link /patch to /axon

graph /patch Vm -title "Membrane potential"
graph /patch m -name gates -title "Gates: m and h of sodium, n of potassium"
graph /patch h -name gates
graph /patch n -name gates
graph /patch INa -name currents -title "Currents into the cell"
graph /patch IK -name currents

form panel -title "Patch of membrane"
dialog current -label "injected current" -value 10 -unit "uA/cm2" -command "set /patch inject {value / 100}"
dialog sodium -label "sodium conductance" -value 120 -unit "mS/cm2" -command "set /patch gNa {value}"
dialog potassium -label "potassium conductance" -value 36 -unit "mS/cm2" -command "set /patch gK {value}"
toggle block -label "block sodium channels (TTX)" -command "call block_sodium {value}"
toggle block_k -label "block potassium channels (TEA)" -command "call block_potassium {value}"
button pulse -label "Run 100 ms" -command "step -time 100"

function block_sodium on
    if on
        set /patch gNa 0
    else
        set /patch gNa {getfield(/output/panel/sodium, value)}
    end
end

function block_potassium on
    if on
        set /patch gK 0
    else
        set /patch gK {getfield(/output/panel/potassium, value)}
    end
end

reset
step -time 100
