import os,sys,time,statistics,subprocess
P=sys.executable
env=lambda d: {**os.environ,"PYTHONPATH":d}
OLD,NEW="/tmp/st/old","/work/wt/start"
C={"pass":(["-c","pass"],"c",NEW),"numpy":(["-c","import numpy"],"c",NEW)}
for n,d in (("old",OLD),("new",NEW)):
    C[f"{n} check"]=(["-m","ciwrap","check"],"c",d); C[f"{n} compare captured"]=(["-m","ciwrap","compare","A","B"],"r",d); C[f"{n} --version"]=(["-m","ciwrap","--version"],"c",d)
    C[f"{n} compare files"]=(["-m","ciwrap","compare","A/step_000.npy","B/step_000.npy"],"r",d)
r={k:[] for k in C}
for i in range(int(sys.argv[1])+1):
    for k,(a,w,d) in C.items():
        t=time.perf_counter(); p=subprocess.Popen([P,*a],cwd="/tmp/st/"+w,env=env(d),stdout=subprocess.DEVNULL); _,st,ru=os.wait4(p.pid,0)
        x=(time.perf_counter()-t,ru.ru_utime+ru.ru_stime); assert st==0,k
        if i: r[k].append(x)
m=lambda k,j: statistics.median(x[j] for x in r[k])
for k in C: print(f"{k:22} wall {m(k,0):.3f} cpu {m(k,1):.3f} cpu/numpy {statistics.median(a[1]/b[1] for a,b in zip(r[k],r['numpy'])):.2f} wall/numpy {statistics.median(a[0]/b[0] for a,b in zip(r[k],r['numpy'])):.2f} cpu/pass {m(k,1)/m('pass',1):.1f}")
