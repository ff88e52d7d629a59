// Branched dendrite: diameters match by the 3/2 rule, and it acts as the cylinder that is drawn beside it
method crank_nicolson
setclock 0 0.05

// Each branch of a pair has d^(3/2) half that of its parent, and the same length in units of its space constant.
pieces = 10
d = 4
scale = 0.5^(2 / 3)

function branch path above diameter length
    create group {path}
    for i = 0 to pieces - 1
        create passive_compartment {path}/part[{i}] -length {length / pieces} -diameter {diameter} -rm 20000
        if i > 0
            link {path}/part[{i - 1}] to {path}/part[{i}]
        end
    end
    if above != ""
        link {above}/part[{pieces - 1}] to {path}/part[0]
    end
end

create group /tree
call branch /tree/trunk "" {d} 200
for a = 0 to 1
    call branch /tree/limb[{a}] /tree/trunk {d * scale} {200 * scale^0.5}
    for b = 0 to 1
        call branch /tree/twig[{2 * a + b}] /tree/limb[{a}] {d * scale^2} {200 * scale}
    end
end

create group /cylinder
call branch /cylinder/one "" {d} 200
call branch /cylinder/two /cylinder/one {d} 200
call branch /cylinder/three /cylinder/two {d} 200

set /tree/trunk/part[0] inject 0.1
set /cylinder/one/part[0] inject 0.1

graph /tree/trunk/part[0] Vm -name near -title "Where the current goes in"
graph /cylinder/one/part[0] Vm -name near
graph /tree/twig[0]/part[{pieces - 1}] Vm -name far -title "Tips"
graph /cylinder/three/part[{pieces - 1}] Vm -name far
cell_view /tree -low -65 -high -40 -title "Tree"
cell_view /cylinder -low -65 -high -40 -title "Cylinder"

form panel -title "Tree and cylinder"
dialog current -label "current into both" -value 0.1 -unit nA -command "call drive {value}"

function drive current
    set /tree/trunk/part[0] inject {current}
    set /cylinder/one/part[0] inject {current}
end

reset
step -time 100
tree = getfield(/tree/trunk/part[0], Vm)
cylinder = getfield(/cylinder/one/part[0], Vm)
echo tree {tree} mV, cylinder {cylinder} mV: they differ by {abs(tree - cylinder)}
