// Passive cable: a current goes in at one end of 1 mm, and the voltage falls along it
method crank_nicolson
setclock 0 0.05

n = 100
create group /cable
create passive_compartment /cable/part[0] -length {1000 / n} -diameter 1 -rm 40000 -ra 100
for i = 1 to n - 1
    copy /cable/part[0] to /cable/part[{i}]
    link /cable/part[{i - 1}] to /cable/part[{i}]
end
set /cable/part[0] inject 0.1

graph /cable/part[0] Vm -name voltage -title "Near end, middle and far end"
graph /cable/part[{n / 2}] Vm -name voltage
graph /cable/part[{n - 1}] Vm -name voltage
cell_view /cable -low -65 -high 105 -title "Along the cable"

form panel -title "Cable"
dialog current -label "current" -value 0.1 -unit nA -command "set /cable/part[0] inject {value}"
dialog resistance -label "membrane resistance" -value 40000 -unit "Ohm cm2" -command "set /cable/* rm {value}"
button release -label "Current off" -command "set /cable/part[0] inject 0"

reset
step -time 400
echo near end {getfield(/cable/part[0], Vm)} mV, far end {getfield(/cable/part[{n - 1}], Vm)} mV: 102.18 and 43.34 by the equation of the cable
