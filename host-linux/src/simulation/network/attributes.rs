//! Known attributes of graph files: those used here, and those with which Graphviz draws. Others
//! may be misspelt.

/// Edge attributes used here.
const UNDERSTOOD: [&str; 2] = ["capacity", "comment"];

/// Drawing attributes of Graphviz, in lower case.
const DRAWING: &str = "\
    area arrowhead arrowsize arrowtail bb bgcolor center charset class cluster clusterrank \
    color colorscheme compound concentrate constraint damping decorate dir distortion dpi \
    edgetooltip edgeurl fillcolor fixedsize fontcolor fontname fontpath fontsize forcelabels \
    gradientangle group headlabel headport headtooltip headurl height href id image imagepos \
    imagescale k label labelangle labeldistance labelfloat labelfontcolor labelfontname \
    labelfontsize labeljust labelloc labeltooltip labelurl landscape layer layout len levels \
    lhead lp ltail margin maxiter mclimit minlen mode model newrank nodesep nojustify \
    normalize nslimit ordering orientation outputorder overlap pad page penwidth peripheries \
    pin pos quantum rank rankdir ranksep ratio rects regular remincross resolution root \
    rotate samehead sametail searchsize sep shape shapefile showboxes sides size skew \
    smoothing sortv splines start style stylesheet taillabel tailport tailtooltip tailurl \
    target tooltip truecolor url vertices viewport voro_margin weight width xlabel xlp z";

/// True if an attribute, in lower case, is used here or for drawing.
pub(super) fn is_known(name: &str) -> bool {
    UNDERSTOOD.contains(&name) || DRAWING.split(' ').any(|known| known == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typing_error_is_not_known() {
        for name in ["capacity", "comment", "label", "area", "z", "rankdir", "color"] {
            assert!(is_known(name), "{name}");
        }
        for name in ["capactiy", "bandwidth", "", "colour"] {
            assert!(!is_known(name), "{name}");
        }
    }
}
