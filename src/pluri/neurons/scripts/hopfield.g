// Hopfield network: three patterns are stored in the weights, and one is found again from a noisy start
setclock 0 1
seed 1

n = 48
n_patterns = 3
noise = 0.15

create group /patterns
create group /net
for p = 0 to n_patterns - 1
    create group /patterns/p[{p}]
    for i = 0 to n - 1
        create binary_unit /patterns/p[{p}]/bit[{i}] -initial_y {2 * (rand() < 0.5) - 1}
    end
end
for i = 0 to n - 1
    create binary_unit /net/unit[{i}]
end

// w_ij is the mean over patterns of the product of their bits; w_ii is 0.
for i = 0 to n - 1
    for j = 0 to n - 1
        if i != j
            w = 0
            for p = 0 to n_patterns - 1
                w = w + getfield(/patterns/p[{p}]/bit[{i}], initial_y) * getfield(/patterns/p[{p}]/bit[{j}], initial_y)
            end
            if w != 0
                connect /net/unit[{i}] to /net/unit[{j}] -weight {w / n}
            end
        end
    end
end

// A linear unit for each pattern tells how much of it the network shows.
for p = 0 to n_patterns - 1
    create rate_unit /overlap[{p}] -function linear
    for i = 0 to n - 1
        connect /net/unit[{i}] to /overlap[{p}] -weight {getfield(/patterns/p[{p}]/bit[{i}], initial_y) / n}
    end
end

function begin_near p
    for i = 0 to n - 1
        bit = getfield(/patterns/p[{p}]/bit[{i}], initial_y)
        if rand() < noise
            bit = -bit
        end
        set /net/unit[{i}] initial_y {bit}
    end
    reset
    step 10
    echo overlaps after ten sweeps: {getfield(/overlap[0], y)} {getfield(/overlap[1], y)} {getfield(/overlap[2], y)}
end

graph /overlap* y -name overlap -title "Overlap with each pattern"

form panel -title "Recall"
dialog noise -label "share of flipped bits" -value 0.15 -command "noise = value"
button zero -label "Begin near pattern 0" -command "call begin_near 0"
button one -label "Begin near pattern 1" -command "call begin_near 1"
button two -label "Begin near pattern 2" -command "call begin_near 2"

call begin_near 1
