//! Attributes of graphs in files: those that count, and those by which Graphviz
//! draws. Others are typing errors, perhaps.

/// Attributes of edges that count here.
const UNDERSTOOD: [&str; 2] = ["capacity", "comment"];

/// Attributes of Graphviz that say how a graph is drawn, in small letters.
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

/// Whether an attribute, in small letters, counts here or is for drawing.
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
