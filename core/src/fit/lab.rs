use super::trials::*;
use super::*;
use std::vec;
use std::vec::Vec;
use std::println;

pub(super) struct Bench { nodes: Vec<Node>, cells: Vec<Cell>, segments: Vec<Segment> }
impl Bench {
    pub(super) fn new() -> Self { Self { nodes: vec![Node::default(); 128], cells: vec![Cell::default(); 128*8], segments: vec![Segment::default(); 8] } }
    pub(super) fn changes(&mut self, points: &[Point], config: &Config) -> Vec<Change> {
        let mut s = Segmentation::new(&mut self.nodes, &mut self.cells, &mut self.segments);
        let fit = s.run(points, config).unwrap();
        fit.changes().collect()
    }
}
fn reps()->usize{std::env::var("REPS").map(|s|s.parse().unwrap()).unwrap_or(1000)}
fn tol()->f64{std::env::var("TOL").map(|s|s.parse().unwrap()).unwrap_or(0.0)}
const GRIDS:[Grid;5]=[Grid::PowersAndNeighbours, Grid::Geometric(16), Grid::Geometric(32), Grid::Geometric(64), Grid::Equidistant];

#[test]
#[ignore]
fn lab_false(){
    let c=Config{tolerance:tol(),..Config::default()};
    let mut b=Bench::new();
    for grid in GRIDS { for told in [true,false] {
        let mut row=std::string::String::new();
        for sigma in [1e4,5e5,5e6] {
        let mut g=Generator::new(11);
        let mut bad=0;
        for _ in 0..reps() { let sizes=grid.sizes(&mut g); let p=clean(&sizes,sigma,told,&mut g); if !b.changes(&p,&c).is_empty(){bad+=1;} }
        row+=&std::format!(" {:.2}%",100.0*bad as f64/reps() as f64);
        }
        println!("{grid:?} told {told}: false {row}");
    }}
}

#[test]
#[ignore]
fn lab_outlier(){
    let c=Config{tolerance:tol(),..Config::default()};
    let mut b=Bench::new();
    for grid in GRIDS { for told in [true,false] {
        let mut row=std::string::String::new();
        for (sigma,size) in [(1e6,3.0),(1e6,4.0),(5e6,4.0),(1e6,5.0),(1e6,6.0),(1e6,8.0),(1e6,20.0),(1e4,2000.0),(1e6,1e4)] {
        let mut g=Generator::new(13);
        let (mut bad,mut extra)=(0,0);
        for r in 0..reps() { let sizes=grid.sizes(&mut g); let mut p=clean(&sizes,sigma,told,&mut g); let at=r%sizes.len(); 
            let was=!b.changes(&p,&c).is_empty();
            p[at]=raised(p[at],size*sigma); if !b.changes(&p,&c).is_empty(){bad+=1; if !was {extra+=1;}} }
        row+=&std::format!(" {}x:{:.2}%/{:.2}%",size,100.0*bad as f64/reps() as f64,100.0*extra as f64/reps() as f64);
        }
        println!("{grid:?} told {told}: {row}");
    }}
}

#[test]
#[ignore]
fn lab_power(){
    let c=Config{tolerance:tol(),..Config::default()};
    let mut b=Bench::new();
    for grid in GRIDS { for told in [true,false] {
        for follow in [3,4,5,8,0,100] {
        let mut row=std::string::String::new();
        for step in [3.0,4.0,5.0,6.0,8.0,1000.0] {
        let mut g=Generator::new(17);
        let (mut found,mut covered,mut exact,mut more)=(0,0,0,0);
        let sigma=1e5;
        for _ in 0..reps() { let sizes=grid.sizes(&mut g); let mut p=clean(&sizes,sigma,told,&mut g); let n=p.len();
            let at= if follow==0 {n/2} else if follow==100 {5} else {n-follow};
            for q in &mut p[at..] { *q=raised(*q,step*sigma); }
            let ch=b.changes(&p,&c);
            if !ch.is_empty() {found+=1; if ch.len()>1 {more+=1;} if ch.iter().any(|x|x.low<=sizes[at]&&x.high>=sizes[at]) {covered+=1;} if ch.iter().any(|x|x.at==sizes[at]) {exact+=1;}} }
        let f=|x:i32|100.0*x as f64/reps() as f64;
        row+=&std::format!(" {}s:{:.1}%(cov {:.1} ex {:.1} more {:.1})",step,f(found),f(covered),f(exact),f(more));
        }
        println!("{grid:?} told {told} follow {follow}: {row}");
    }}}
}
